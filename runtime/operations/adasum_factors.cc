#include "runtime/operations/adasum_factors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace runjob::runtime {
namespace {

class Tree {
 public:
  Tree(std::span<const double> dots, std::span<double> factors) : dots_(dots), factors_(factors) {
    std::fill(factors_.begin(), factors_.end(), 1.0);
    for (std::size_t rank = 0; rank < factors_.size(); ++rank) vectors_.push_back({rank});
  }

  bool is_finite() const {
    for (std::size_t i = 0; i < factors_.size(); ++i) {
      for (std::size_t j = i; j < factors_.size(); ++j) {
        if (!std::isfinite(dot(i, j))) return false;
      }
    }
    return true;
  }

  void join_all() {
    const std::size_t power = std::bit_floor(vectors_.size());
    for (std::size_t rank = power; rank < vectors_.size(); ++rank) join(vectors_[rank - power], vectors_[rank]);
    for (std::size_t distance = 1; distance < power; distance *= 2) {
      for (std::size_t rank = 0; rank < power; rank += 2 * distance) join(vectors_[rank], vectors_[rank + distance]);
    }
  }

 private:
  /// The ranks that a vector stands for. It is the sum of their vectors, each with its factor.
  using Ranks = std::vector<std::size_t>;

  /// A dot product of two vectors, and the sum of the magnitudes of its terms.
  struct Product {
    double value = 0, magnitude = 0;
  };

  double dot(std::size_t i, std::size_t j) const { return dots_[std::min(i, j) * factors_.size() + std::max(i, j)]; }

  Product product(const Ranks& a, const Ranks& b) const {
    Product result;
    for (const std::size_t i : a) {
      for (const std::size_t j : b) {
        const double term = factors_[i] * factors_[j] * dot(i, j);
        result.value += term;
        result.magnitude += std::abs(term);
      }
    }
    return result;
  }

  /// The factor of a vector with this weight that is joined to another one, with which it has the product `with_other`.
  double factor(const Ranks& vector, double weight, double with_other) const {
    constexpr double kLeastNorm = 0x1p-511, kLeastLeft = 0x1p-40;
    const Product norm = product(vector, vector);
    if (norm.value < kLeastNorm || norm.value < kLeastLeft * norm.magnitude) return 1;
    return 1 - weight * with_other / norm.value;
  }

  /// The result takes the place of `a`.
  void join(Ranks& a, const Ranks& b) {
    const auto m = static_cast<double>(a.size()), n = static_cast<double>(b.size());
    const double with_other = product(a, b).value;
    const double of_a = factor(a, m / (m + n), with_other), of_b = factor(b, n / (m + n), with_other);
    for (const std::size_t rank : a) factors_[rank] *= of_a;
    for (const std::size_t rank : b) factors_[rank] *= of_b;
    a.insert(a.end(), b.begin(), b.end());
  }

  const std::span<const double> dots_;
  const std::span<double> factors_;
  std::vector<Ranks> vectors_;  ///< by the lowest rank of each
};

}  // namespace

void find_adasum_factors(std::span<const double> dots, std::span<double> factors) {
  Tree tree(dots, factors);
  if (!tree.is_finite()) {
    std::fill(factors.begin(), factors.end(), std::numeric_limits<double>::quiet_NaN());
  } else {
    tree.join_all();
  }
}

}  // namespace runjob::runtime
