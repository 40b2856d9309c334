#include "runtime/collectives/nccl/translation.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;
namespace nccl = runjob::runtime::nccl;

namespace {

std::string objection_to(DType dtype, ReduceOp op, double prescale, double postscale) {
  Call call;
  call.dtype = dtype;
  call.op = op;
  call.prescale = prescale;
  call.postscale = postscale;
  std::string objection;
  static_cast<void>(nccl::translate(call, 4, objection));
  return objection;
}

}  // namespace

TEST_CASE("NCCL runs the reductions that mean the same there", "[runtime][unit]") {
  CHECK(objection_to(DType::kFloat32, ReduceOp::kSum, 1, 1).empty());
  CHECK(objection_to(DType::kBfloat16, ReduceOp::kAverage, 0.5, 1).empty());
  CHECK(objection_to(DType::kBool, ReduceOp::kMin, 1, 1).empty());
  CHECK_THAT(objection_to(DType::kInt16, ReduceOp::kSum, 1, 1), ContainsSubstring("cannot reduce int16"));
  CHECK_FALSE(objection_to(DType::kInt32, ReduceOp::kAverage, 1, 1).empty());
  CHECK(objection_to(DType::kFloat32, ReduceOp::kSum, 0.1, 2).empty());
  CHECK_FALSE(objection_to(DType::kFloat32, ReduceOp::kSum, 1, 3).empty());
  CHECK_FALSE(objection_to(DType::kInt64, ReduceOp::kSum, 2, 1).empty());
  CHECK_FALSE(objection_to(DType::kBfloat16, ReduceOp::kSum, 0.1, 1).empty());
  CHECK_THAT(objection_to(DType::kFloat16, ReduceOp::kAverage, 1e-7, 1),
             ContainsSubstring("by a float16 value, which cannot be 2.5e-08"));
  CHECK_FALSE(objection_to(DType::kFloat32, ReduceOp::kMax, 2, 1).empty());
}

TEST_CASE("calls in NCCL's terms", "[runtime][unit]") {
  std::string objection;
  Call call;
  call.dtype = DType::kFloat16;
  call.op = ReduceOp::kAverage;
  CHECK(nccl::translate(call, 4, objection).op == nccl::kAvg);
  CHECK(nccl::translate(call, 1, objection).op == nccl::kSum);
  call.prescale = 2;
  CHECK(nccl::translate(call, 4, objection).factor == 0.5);
  call.postscale = 0.25;
  CHECK(nccl::translate(call, 4, objection).factor == 0.125);
  call.postscale = 1;
  call.dtype = DType::kBool;
  call.prescale = 1;
  call.op = ReduceOp::kSum;
  CHECK(nccl::translate(call, 4, objection).op == nccl::kMax);
  call.kind = Kind::kAllgather;
  call.dtype = DType::kUint16;
  CHECK(nccl::translate(call, 4, objection).per_value == 2);
  CHECK(objection.empty());
}
