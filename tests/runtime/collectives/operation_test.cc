#include "runtime/collectives/operation.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

std::string refusal(const Signature& signature, int size = 4) {
  try {
    check_operation("x", signature, size);
  } catch (const runjob::Error& error) {
    CHECK(error.code() == runjob::Errc::kInvalidArgument);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("reductions are numbered as in runjob.h", "[runtime][unit]") {
  for (const int number : {0, 1, 2, 3, 4, 5}) CHECK(is_reduce_op(number));
  for (const int number : {-1, 6}) CHECK_FALSE(is_reduce_op(number));
  CHECK(to_string(ReduceOp::kProduct) == "product");
  CHECK(to_string(ReduceOp::kAdasum) == "Adasum");
}

TEST_CASE("a shape's elements are counted without overflow", "[runtime][unit]") {
  CHECK(element_count(Shape{}) == 1);
  CHECK(element_count(Shape{3, 4}) == 12);
  CHECK(element_count(Shape{std::int64_t{1} << 40, 0, std::int64_t{1} << 40}) == 0);
  CHECK_THROWS_WITH(element_count(Shape{2, -3}), "shape [2, -3] has a negative extent");
  CHECK_THROWS_WITH(element_count(Shape{std::int64_t{1} << 40, std::int64_t{1} << 40}), ContainsSubstring("too many"));
}

TEST_CASE("a group's tensors are checked one by one, and named", "[runtime][unit]") {
  Signature group{.kind = Kind::kAllgather};
  group.group = {{DType::kBool, {2}}, {DType::kFloat32, {}}};
  CHECK(tensor_count(group) == 2);
  CHECK(signature_of(group, 0) == Signature{.kind = Kind::kAllgather, .dtype = DType::kBool, .shape = {2}});
  CHECK(refusal(group) == "allgather 'x_2of2': a scalar has no first dimension to gather along");
  group.kind = Kind::kBroadcast;
  CHECK(refusal(group).empty());
  group.kind = Kind::kAllreduce;
  group.op = ReduceOp::kAverage;
  CHECK(refusal(group) == "allreduce 'x_1of2': bool values cannot be averaged");
  group.kind = Kind::kAlltoall;
  CHECK(refusal(group) == "alltoall 'x': it cannot be grouped");
  CHECK(tensor_count({}) == 1);
}

TEST_CASE("only allreduce is compressed, to 16 bits", "[runtime][unit]") {
  Signature signature{.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .shape = {2}, .wire = DType::kBfloat16};
  CHECK(refusal(signature).empty());
  signature.wire = DType::kInt8;
  CHECK(refusal(signature) == "allreduce 'x': values cannot be compressed to int8");
  signature = {.kind = Kind::kBroadcast, .shape = {2}, .wire = DType::kFloat16};
  CHECK(refusal(signature) == "broadcast 'x': only an allreduce can be compressed");
  CHECK(wire_dtype(DType::kFloat64, DType::kFloat16) == DType::kFloat16);
  CHECK(wire_dtype(DType::kFloat64, {}) == DType::kFloat64);
  CHECK(wire_dtype(DType::kBfloat16, DType::kFloat16) == DType::kBfloat16);
  CHECK(wire_dtype(DType::kInt32, DType::kFloat16) == DType::kInt32);
}

TEST_CASE("operations that can never work are refused with the reason", "[runtime][unit]") {
  Signature allreduce{.kind = Kind::kAllreduce, .dtype = DType::kBool, .op = ReduceOp::kAverage, .shape = {2}};
  CHECK(refusal(allreduce) == "allreduce 'x': bool values cannot be averaged");
  allreduce.op = ReduceOp::kMax;
  CHECK(refusal(allreduce).empty());
  allreduce.postscale = 2;
  CHECK(refusal(allreduce) == "allreduce 'x': bool values cannot be scaled");
  CHECK(refusal({.kind = Kind::kReducescatter}) == "reducescatter 'x': a scalar has no first dimension to scatter");
  CHECK(refusal({.kind = Kind::kAlltoall}) == "alltoall 'x': a scalar has no first dimension to split");
  for (const Shape& splits : {Shape{}, Shape{3}, Shape{1, 1, 1, 1}, Shape{-1, 4, 0, 0}, Shape{INT64_MAX, 4, 0, 0}}) {
    CHECK_THAT(refusal({.kind = Kind::kAlltoall, .shape = {3}, .splits = splits}),
               ContainsSubstring("do not divide the 3 rows of the tensor among 4 ranks"));
  }
  CHECK(refusal({.kind = Kind::kAllgather}) == "allgather 'x': a scalar has no first dimension to gather along");
  CHECK(refusal({.kind = Kind::kBroadcast, .root = 4}) == "broadcast 'x': root rank 4 is not in a job of size 4");
  CHECK(refusal({.kind = Kind::kBroadcast, .root = -1}) == "broadcast 'x': root rank -1 is not in a job of size 4");
  CHECK(refusal({.kind = Kind::kAllgather, .process_set = 1}) ==
        "allgather 'x' of process set 1: a scalar has no first dimension to gather along");
  Signature huge{.kind = Kind::kBroadcast, .dtype = DType::kFloat64, .shape = {std::int64_t{1} << 61}};
  CHECK_THAT(refusal(huge), ContainsSubstring("too many elements"));
}

TEST_CASE("the elements of a row are those of one index of the first dimension", "[runtime][unit]") {
  CHECK(row_elements(Shape{7}) == 1);
  CHECK(row_elements(Shape{7, 2, 3}) == 6);
  CHECK(row_elements(Shape{0, 4}) == 4);
  CHECK(row_elements(Shape{5, 0, 4}) == 0);
}

TEST_CASE("a view describes what it was made into, and nothing else", "[runtime][unit]") {
  const Shape shape{4, 3}, splits{1, 3}, other{4, 2};
  SignatureView view{.kind = Kind::kAlltoall,
                     .dtype = DType::kInt16,
                     .op = ReduceOp::kMax,
                     .root = 1,
                     .process_set = 2,
                     .prescale = 0.5,
                     .postscale = 3,
                     .shape = shape,
                     .splits = splits,
                     .wire = DType::kFloat16};
  const Signature signature = with_extents<Shape>(view);
  CHECK(signature.shape == shape);
  CHECK(signature.splits == splits);
  CHECK(describes(view, signature));
  const auto change = GENERATE(range(0, 9));
  if (change == 0) view.kind = Kind::kAllreduce;
  if (change == 1) view.dtype = DType::kUint16;
  if (change == 2) view.op = ReduceOp::kMin;
  if (change == 3) view.root = 0;
  if (change == 4) view.process_set = 0;
  if (change == 5) view.prescale = 1;
  if (change == 6) view.shape = other;
  if (change == 7) view.splits = other;
  if (change == 8) view.wire.reset();
  CHECK_FALSE(describes(view, signature));
}

TEST_CASE("a view of an alltoall without splits describes one that divides evenly", "[runtime][unit]") {
  const Shape shape{4};
  const SignatureView view{.kind = Kind::kAlltoall, .shape = shape};
  Signature signature = with_extents<Shape>(view);
  signature.splits = {2, 2};
  CHECK(describes(view, signature));
  signature.splits = {1, 3};
  CHECK_FALSE(describes(view, signature));
  signature.splits = {2, 2};
  signature.group = {{}};
  CHECK_FALSE(describes(view, signature));
}
