#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

/// Adasum of whole vectors in float64, as it is defined: to compare with what follows from dot products.
namespace runjob::runtime {

using Vector = std::vector<double>;

inline double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Of vectors that stand for m and n ranks.
inline Vector adasum_pair(const Vector& a, double m, const Vector& b, double n) {
  const double product = dot(a, b), aa = dot(a, a), bb = dot(b, b);
  const double of_a = aa < 0x1p-511 ? 1 : 1 - m / (m + n) * product / aa;
  const double of_b = bb < 0x1p-511 ? 1 : 1 - n / (m + n) * product / bb;
  Vector joined(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) joined[i] = of_a * a[i] + of_b * b[i];
  return joined;
}

inline Vector adasum_tree(std::vector<Vector> vectors) {
  std::vector<double> ranks(vectors.size(), 1);
  const auto join = [&](std::size_t to, std::size_t from) {
    vectors[to] = adasum_pair(vectors[to], ranks[to], vectors[from], ranks[from]);
    ranks[to] += ranks[from];
  };
  const std::size_t power = std::bit_floor(vectors.size());
  for (std::size_t i = power; i < vectors.size(); ++i) join(i - power, i);
  for (std::size_t distance = 1; distance < power; distance *= 2)
    for (std::size_t i = 0; i < power; i += 2 * distance) join(i, i + distance);
  return vectors.front();
}

/// |a - b| / |b|; |a| where b is zero.
inline double distance(const Vector& a, const Vector& b) {
  double difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference += (a[i] - b[i]) * (a[i] - b[i]);
  const double norm = dot(b, b);
  return std::sqrt(norm == 0 ? difference : difference / norm);
}

}  // namespace runjob::runtime
