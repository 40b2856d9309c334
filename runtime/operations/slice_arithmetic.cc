#include "runtime/operations/slice_arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/multiversion.hpp"
#include "runtime/collectives/reduce.hpp"

namespace runjob::runtime {
namespace {

/// The elements that are converted at once: those of a few ranks fit in the first-level cache.
constexpr std::size_t kBlock = 256;

struct Widen {
  RUNJOB_INLINE void run(double* out, const float* in, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = in[i];
  }
};

struct Round {
  RUNJOB_INLINE void run(float* out, const double* in, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
  }
};

/// Rounds to float32 so that a further rounding to 16 bits gives what a single one would: the last bit is set if any
/// bit is lost ("to odd").
struct RoundToOdd {
  RUNJOB_INLINE void run(float* out, const double* in, std::size_t count) {
    constexpr std::uint64_t kLost = (std::uint64_t{1} << 29) - 1, kLast = kLost + 1;
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = std::bit_cast<std::uint64_t>(in[i]);
      const std::uint64_t odd = (bits & kLost) != 0 ? kLast : 0;
      out[i] = static_cast<float>(std::bit_cast<double>((bits & ~kLost) | odd));
    }
  }
};

/// A whole block; its further elements are zeros. Sixteen sums keep the processor's adders busy.
struct Dot {
  RUNJOB_INLINE void run(double* sum, const double* a, const double* b) {
    constexpr std::size_t kLanes = 16;
    double lanes[kLanes] = {};
    for (std::size_t i = 0; i < kBlock; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
    for (std::size_t width = kLanes / 2; width > 0; width /= 2)
      for (std::size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
    *sum += lanes[0];
  }
};

struct Add {
  RUNJOB_INLINE void run(double* sum, const double* in, double factor) {
    for (std::size_t i = 0; i < kBlock; ++i) sum[i] += factor * in[i];
  }
};

/// The values from the element `first` on, as a block of float64.
void load(DType dtype, const void* slice, std::size_t first, std::size_t count, double* block, InstructionSet set) {
  const auto* from = static_cast<const std::byte*>(slice) + first * size_of(dtype);
  std::fill(block + count, block + kBlock, 0.0);
  if (dtype == DType::kFloat64) return copy_bytes(block, from, count * sizeof(double));
  alignas(64) float room[kBlock];
  if (is_half(dtype)) {
    widen(dtype, room, from, count, set);
  } else {
    copy_bytes(room, from, count * sizeof(float));
  }
  version_of<Widen, double*, const float*, std::size_t>(set)(block, room, count);
}

void store(DType dtype, void* slice, std::size_t first, std::size_t count, const double* block, InstructionSet set) {
  auto* const to = static_cast<std::byte*>(slice) + first * size_of(dtype);
  if (dtype == DType::kFloat64) return copy_bytes(to, block, count * sizeof(double));
  alignas(64) float room[kBlock];
  if (is_half(dtype)) {
    version_of<RoundToOdd, float*, const double*, std::size_t>(set)(room, block, count);
    return narrow(dtype, to, room, count, set);
  }
  version_of<Round, float*, const double*, std::size_t>(set)(room, block, count);
  copy_bytes(to, room, count * sizeof(float));
}

}  // namespace

void find_dot_products(DType dtype, std::span<const void* const> slices, std::size_t count, std::span<double> dots,
                       InstructionSet set) {
  const std::size_t ranks = slices.size();
  const auto dot = version_of<Dot, double*, const double*, const double*>(set);
  std::vector<double> blocks(ranks * kBlock);
  std::fill(dots.begin(), dots.end(), 0.0);
  for (std::size_t first = 0; first < count; first += kBlock) {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      load(dtype, slices[rank], first, std::min(kBlock, count - first), &blocks[rank * kBlock], set);
    for (std::size_t i = 0; i < ranks; ++i)
      for (std::size_t j = i; j < ranks; ++j) dot(&dots[i * ranks + j], &blocks[i * kBlock], &blocks[j * kBlock]);
  }
}

void sum_with_factors(DType dtype, void* out, std::span<const void* const> slices, std::size_t count,
                      std::span<const double> factors, InstructionSet set) {
  const auto add = version_of<Add, double*, const double*, double>(set);
  alignas(64) double sum[kBlock], values[kBlock];
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t piece = std::min(kBlock, count - first);
    std::fill(sum, sum + kBlock, 0.0);
    for (std::size_t rank = 0; rank < slices.size(); ++rank) {
      load(dtype, slices[rank], first, piece, values, set);
      add(sum, values, factors[rank]);
    }
    store(dtype, out, first, piece, sum, set);
  }
}

}  // namespace runjob::runtime
