#pragma once

#include <vector>

#include "tests/runtime/collectives/reduction_inputs.hpp"

/// Reductions with random inputs, and their results.
namespace runjob::runtime {

inline constexpr ReduceOp kOps[] = {ReduceOp::kAverage, ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax,
                                    ReduceOp::kProduct};

/// Any bits at all for integers, for floats values whose products stay finite.
inline Bytes random_input(DType dtype, std::size_t count, int rank) {
  const auto value_of = [](std::uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-22F - 2; };  // -2 to 2
  return make_input(dtype, count, rank, value_of);
}

struct ReductionCase {
  DType dtype;
  ReduceOp op;
  std::size_t count;
  double prescale = 1, postscale = 1;
  bool in_place = false;
};

/// What the ranks give, by rank, and what each of them gets. Made once for all ranks: a sanitizer makes it slow.
struct ReductionData {
  std::vector<Bytes> inputs;
  Bytes result;
};

inline ReductionData data_of(const ReductionCase& c, int size) {
  ReductionData data;
  for (int rank = 0; rank < size; ++rank) data.inputs.push_back(random_input(c.dtype, c.count, rank));
  data.result = reduce_inputs(data.inputs, c.dtype, c.op, c.prescale, c.postscale);
  return data;
}

inline std::vector<ReductionData> data_of(const std::vector<ReductionCase>& cases, int size) {
  std::vector<ReductionData> data;
  for (const ReductionCase& c : cases) data.push_back(data_of(c, size));
  return data;
}

/// One call for a sanitizer, where == of two vectors of std::byte is one for each byte.
inline bool same_bytes(const Bytes& a, const Bytes& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace runjob::runtime
