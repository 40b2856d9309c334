#include "runtime/collectives/nccl/translation.hpp"

#include <optional>

#include <fmt/format.h>

#include "runtime/collectives/packing.hpp"
#include "runtime/collectives/reduce.hpp"

namespace runjob::runtime::nccl {
namespace {

/// True if NCCL can multiply values of `dtype`, a type of floats, by the factor as it is. Every factor of the other
/// types is rounded to float32 on the host too.
bool has_factor(DType dtype, double factor) {
  if (!is_half(dtype)) return true;
  std::byte half[sizeof(std::uint16_t)];
  double again = 0;
  convert(dtype, half, DType::kFloat64, &factor, 1, 1);
  convert(DType::kFloat64, &again, dtype, half, 1, 1);
  return again == factor;
}

/// The type in which NCCL reduces values; nullopt when it has none, so that it would reduce their bytes.
std::optional<DataType> reduced(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
    case DType::kBool:
      return kUint8;
    case DType::kInt8:
      return kInt8;
    case DType::kInt32:
      return kInt32;
    case DType::kInt64:
      return kInt64;
    case DType::kFloat16:
      return kFloat16;
    case DType::kFloat32:
      return kFloat32;
    case DType::kFloat64:
      return kFloat64;
    case DType::kBfloat16:
      return kBfloat16;
    case DType::kUint16:
    case DType::kInt16:
      return std::nullopt;
  }
  return std::nullopt;
}

/// The type in which values are only moved: their own, or bytes where NCCL has none.
Terms moved(DType dtype) {
  if (const auto own = reduced(dtype)) return {.dtype = *own};
  return {.per_value = size_of(dtype)};
}

/// Bools are bytes of 0 and 1: or is their maximum, and their minimum.
RedOp op_of(ReduceOp op, bool is_bool) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return is_bool ? kMax : kSum;
    case ReduceOp::kMin:
      return kMin;
    case ReduceOp::kMax:
      return kMax;
    case ReduceOp::kProduct:
      return is_bool ? kMin : kProd;
    case ReduceOp::kAdasum:  // refused before
      break;
  }
  return kSum;
}

}  // namespace

Terms translate(const Call& call, int size, std::string& objection) {
  Terms terms = moved(call.dtype);
  if (call.kind != Kind::kAllreduce && call.kind != Kind::kReducescatter) return terms;
  if (const auto dtype = reduced(call.dtype))
    terms.dtype = *dtype;
  else
    objection = fmt::format("NCCL cannot reduce {} values; convert them to int32 on the GPU", to_string(call.dtype));
  const bool is_float = runtime::is_float(call.dtype);
  const bool is_scaled = call.prescale != 1 || call.postscale != 1;
  terms.op = op_of(call.op, call.dtype == DType::kBool);
  if (call.op == ReduceOp::kAverage && is_float && !is_scaled) {
    if (size > 1) terms.op = kAvg;  // of one rank it is the sum: a copy
    return terms;
  }
  if (call.op == ReduceOp::kAverage && !is_float)
    objection = "NCCL rounds averages of integers in another way; sum them, and divide the sum on the GPU";
  if (!is_scaled) return terms;
  const bool adds = call.op == ReduceOp::kSum || call.op == ReduceOp::kAverage;
  if (!is_float || !adds || !is_power_of_two(call.postscale)) {
    objection =
        "NCCL can only multiply the inputs of sums and averages of floats (prescale); multiply other values on the "
        "GPU, before the operation or after it";
    return terms;
  }
  terms.factor = call.prescale * call.postscale / (call.op == ReduceOp::kAverage ? size : 1);
  if (!has_factor(call.dtype, terms.factor)) {
    objection = fmt::format("NCCL multiplies {0} values by a {0} value, which cannot be {1}; multiply them on the GPU",
                            to_string(call.dtype), terms.factor);
  }
  return terms;
}

}  // namespace runjob::runtime::nccl
