#include "runtime/collectives/nccl/translation.hpp"

#include <optional>

#include <fmt/format.h>

namespace runjob::runtime::nccl {
namespace {

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
    objection = fmt::format("NCCL cannot reduce {} values", to_string(call.dtype));
  const bool is_float = runtime::is_float(call.dtype);
  const bool is_scaled = call.prescale != 1 || call.postscale != 1;
  terms.op = op_of(call.op, call.dtype == DType::kBool);
  if (call.op == ReduceOp::kAverage && is_float && !is_scaled) {
    terms.op = kAvg;
    return terms;
  }
  if (call.op == ReduceOp::kAverage && !is_float) objection = "NCCL rounds averages of integers in another way";
  if (!is_scaled) return terms;
  const bool adds = call.op == ReduceOp::kSum || call.op == ReduceOp::kAverage;
  if (!is_float || !adds || call.postscale != 1) {
    objection = "NCCL can scale only the inputs of sums of floats";
    return terms;
  }
  terms.factor = call.op == ReduceOp::kAverage ? call.prescale / size : call.prescale;
  return terms;
}

}  // namespace runjob::runtime::nccl
