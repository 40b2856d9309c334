#include "runtime/operations/adasum_factors.hpp"

#include <limits>
#include <random>

#include "tests/catch.hpp"
#include "tests/runtime/operations/adasum_tree.hpp"

using namespace runjob::runtime;

namespace {

constexpr std::size_t kElements = 40;

Vector random_vector(std::mt19937& random, double scale = 1) {
  std::normal_distribution<double> normal;
  Vector vector(kElements);
  for (double& value : vector) value = scale * normal(random);
  return vector;
}

std::vector<double> dots_of(const std::vector<Vector>& vectors) {
  std::vector<double> dots;
  for (std::size_t i = 0; i < vectors.size(); ++i)
    for (std::size_t j = 0; j < vectors.size(); ++j)
      dots.push_back(j < i ? 1e300 : dot(vectors[i], vectors[j]));  // below the diagonal nothing is read
  return dots;
}

std::vector<double> factors_of(const std::vector<double>& dots, std::size_t ranks) {
  std::vector<double> factors(ranks);
  find_adasum_factors(dots, factors);
  return factors;
}

Vector adasum(const std::vector<Vector>& vectors) {
  const std::vector<double> factors = factors_of(dots_of(vectors), vectors.size());
  Vector sum(vectors.front().size());
  for (std::size_t rank = 0; rank < vectors.size(); ++rank)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factors[rank] * vectors[rank][i];
  return sum;
}

Vector sum_of(const std::vector<Vector>& vectors, double factor) {
  Vector sum(vectors.front().size());
  for (const Vector& vector : vectors)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * vector[i];
  return sum;
}

}  // namespace

TEST_CASE("dot products alone give the tree's result", "[runtime][unit]") {
  const std::size_t ranks = GENERATE(range(1u, 10u));
  const double scale = GENERATE(1.0, 0x1p-300, 0x1p300);
  std::mt19937 random(static_cast<unsigned>(ranks));
  std::vector<Vector> vectors;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    vectors.push_back(random_vector(random, scale * (1 + 3.0 * static_cast<double>(rank))));
  CHECK(distance(adasum(vectors), adasum_tree(vectors)) < 1e-14);
  vectors[ranks / 2].assign(kElements, 0);  // as of a rank that has joined
  CHECK(distance(adasum(vectors), adasum_tree(vectors)) < 1e-14);
}

TEST_CASE("parallel vectors become their mean, orthogonal ones their sum", "[runtime][unit]") {
  const std::size_t ranks = GENERATE(range(1u, 10u));
  std::mt19937 random(1);
  const Vector direction = random_vector(random);
  std::vector<Vector> parallel, orthogonal;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    parallel.push_back(direction);
    for (double& value : parallel.back()) value *= 0.5 + static_cast<double>(rank);
    orthogonal.emplace_back(kElements);
    for (std::size_t i = rank; i < kElements; i += ranks) orthogonal.back()[i] = direction[i];
  }
  CHECK(distance(adasum(parallel), sum_of(parallel, 1.0 / static_cast<double>(ranks))) < 1e-12);
  CHECK(distance(adasum(orthogonal), sum_of(orthogonal, 1)) < 1e-15);
}

TEST_CASE("a squared norm of which nothing is left counts as zero", "[runtime][unit]") {
  CHECK(factors_of({0, 0, 0, 4}, 2) == std::vector<double>{1, 1});
  CHECK(factors_of({0x1p-512, 0x1p-512, 0, 4}, 2)[0] == 1);
  CHECK(factors_of({0x1p-510, 0x1p-510, 0, 4}, 2)[0] == 0.5);
  std::mt19937 random(2);
  const Vector a = random_vector(random), b = random_vector(random);
  Vector opposite = a;
  for (double& value : opposite) value = -value;
  const std::vector<Vector> vectors{a, opposite, b, b};
  CHECK(distance(adasum(vectors), b) < 1e-15);
}

TEST_CASE("a dot product that is not finite makes all factors NaN", "[runtime][unit]") {
  const double bad = GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
  const std::size_t place = GENERATE(0u, 1u, 3u);
  std::vector<double> dots{1, 0, 0, 1};
  dots[place] = bad;
  for (const double factor : factors_of(dots, 2)) CHECK(std::isnan(factor));
}
