#include "runtime/negotiation/prepared_operation.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

/// As rank 1 of 3.
PreparedOperation prepare(const Signature& signature, const std::vector<std::int64_t>& extents = {}) {
  Decision decision;
  decision.first_extents = extents;
  return prepare_operation(signature, decision, 1, 3);
}

}  // namespace

TEST_CASE("what has a result of its own has its extents and bytes", "[runtime][unit]") {
  const auto gathered = prepare({.kind = Kind::kAllgather, .dtype = DType::kInt32, .shape = {2, 5}}, {4, 2, 0});
  CHECK(gathered.result == Shape{6, 5});
  CHECK(gathered.result_bytes == 120);
  CHECK(gathered.call.counts == std::vector<std::size_t>{20, 10, 0});
  CHECK(gathered.received_splits == Shape{4, 2, 0});

  const auto scattered = prepare({.kind = Kind::kReducescatter, .dtype = DType::kFloat64, .shape = {7, 2}});
  CHECK(scattered.result == Shape{2, 2});
  CHECK(scattered.call.counts == std::vector<std::size_t>{6, 4, 4});

  const auto exchanged =
      prepare({.kind = Kind::kAlltoall, .shape = {3, 2}, .splits = {1, 2, 0}}, {0, 4, 0, 1, 2, 0, 0, 3, 1});
  CHECK(exchanged.result == Shape{9, 2});
  CHECK(exchanged.received_splits == Shape{4, 2, 3});
  CHECK(exchanged.call.send_counts == std::vector<std::size_t>{2, 4, 0});
  CHECK(exchanged.call.largest_part == 8);
  CHECK_FALSE(exchanged.call.has_equal_parts);
  const auto equal =
      prepare({.kind = Kind::kAlltoall, .shape = {6, 2}, .splits = {2, 2, 2}}, {2, 2, 2, 2, 2, 2, 2, 2, 2});
  CHECK(equal.call.largest_part == 4);
  CHECK(equal.call.has_equal_parts);

  CHECK(prepare({.kind = Kind::kAllreduce, .shape = {4}}).result.empty());
}

TEST_CASE("what moves nothing is the same on every rank", "[runtime][unit]") {
  CHECK(prepare({.kind = Kind::kBarrier}).moves_nothing);
  CHECK(prepare({.kind = Kind::kAllreduce, .shape = {0, 3}}).moves_nothing);
  CHECK(prepare({.kind = Kind::kAllgather, .shape = {0, 3}}, {0, 0, 0}).moves_nothing);
  CHECK(prepare({.kind = Kind::kAllgather, .shape = {2, 0}}, {4, 2, 0}).moves_nothing);
  CHECK_FALSE(prepare({.kind = Kind::kAllgather, .shape = {0, 3}}, {4, 0, 0}).moves_nothing);  // others have something
}
