#include "runtime/negotiation/combine_messages.hpp"

#include <cstring>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

using namespace runjob::runtime;

namespace {

using Values = std::vector<std::int32_t>;

/// As rank 1 of 3 computes it.
Values combine(Call call, const std::vector<Values>& inputs, std::size_t results,
               const std::vector<std::int64_t>& extents = {}) {
  MessageInputs messages;
  for (const Values& input : inputs) messages.by_rank.push_back(std::as_bytes(std::span(input)));
  Values output(results, -1);
  call.dtype = DType::kInt32;
  call.op = ReduceOp::kSum;
  call.output = output.data();
  Decision decision;
  decision.first_extents = extents;
  const Layout layout = small_layout(1);
  const TestSegment segment(layout);
  const Channels channels(segment.data(), layout, options_of(0));
  combine_messages(channels.rounds, call, decision, 1, messages);
  return output;
}

std::size_t largest(const Signature& signature, const std::vector<std::int64_t>& extents) {
  Decision decision;
  decision.first_extents = extents;
  return largest_input(signature, decision);
}

}  // namespace

TEST_CASE("every kind of operation is computed from all ranks' inputs", "[runtime][unit]") {
  CHECK(combine({.kind = Kind::kAllreduce, .count = 2}, {{1, 2}, {10, 20}, {100, 200}}, 2) == Values{111, 222});
  CHECK(combine({.kind = Kind::kReducescatter, .count = 4, .counts = {2, 1, 1}},
                {{1, 2, 3, 4}, {10, 20, 30, 40}, {100, 200, 300, 400}}, 1) == Values{333});
  CHECK(combine({.kind = Kind::kBroadcast, .root = 2, .count = 2}, {{}, {}, {5, 6}}, 2) == Values{5, 6});
  CHECK(combine({.kind = Kind::kBroadcast, .root = 1, .count = 1}, {{}, {5}, {}}, 1) == Values{-1});  // has it
  CHECK(combine({.kind = Kind::kAllgather}, {{1}, {}, {2, 3}}, 3) == Values{1, 2, 3});
  // rows of two elements, sender by sender: for rank 1 the second row of rank 0, nothing of rank 1, both of rank 2
  CHECK(combine({.kind = Kind::kAlltoall, .counts = {2, 0, 4}}, {{1, 1, 2, 2}, {}, {3, 3, 4, 4}}, 6,
                {1, 1, 0, 0, 0, 0, 0, 2, 0}) == Values{2, 2, 3, 3, 4, 4});
  CHECK(combine({.kind = Kind::kBarrier}, {{}, {}, {}}, 0).empty());
}

TEST_CASE("the largest input is any rank's", "[runtime][unit]") {
  CHECK(largest({.kind = Kind::kBarrier, .shape = {}}, {}) == 0);
  CHECK(largest({.kind = Kind::kAllreduce, .dtype = DType::kFloat64, .shape = {3, 2}}, {}) == 48);
  CHECK(largest({.kind = Kind::kAllgather, .dtype = DType::kInt16, .shape = {1, 5}}, {1, 7, 2}) == 70);
  CHECK(largest({.kind = Kind::kAlltoall, .shape = {3, 2}, .splits = {1, 2}}, {1, 2, 4, 5}) == 18);
}

TEST_CASE("what is compressed, and a group, fits no message", "[runtime][unit]") {
  CHECK(largest({.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .shape = {1}, .wire = DType::kFloat16}, {}) ==
        SIZE_MAX);
  CHECK(largest({.kind = Kind::kAllreduce, .group = {{DType::kFloat32, {1}}}}, {}) == SIZE_MAX);
}

TEST_CASE("no other rank reads what a rank keeps for itself", "[runtime][unit]") {
  const auto unread = [](const Signature& signature, int rank) {
    const Rounds::Part part = own_message_of(signature, rank, 3).unread;
    return std::pair(part.first, part.bytes);
  };
  const Signature alltoall{.kind = Kind::kAlltoall, .dtype = DType::kInt16, .shape = {6, 5}, .splits = {1, 2, 3}};
  CHECK(unread(alltoall, 0) == std::pair<std::size_t, std::size_t>(0, 10));
  CHECK(unread(alltoall, 1) == std::pair<std::size_t, std::size_t>(10, 20));
  CHECK(unread(alltoall, 2) == std::pair<std::size_t, std::size_t>(30, 30));
  const Signature scatter{.kind = Kind::kReducescatter, .dtype = DType::kFloat32, .shape = {4}};
  CHECK(unread(scatter, 1) == std::pair<std::size_t, std::size_t>(8, 4));
  CHECK(unread({.kind = Kind::kAllgather, .dtype = DType::kFloat32, .shape = {4}}, 1).second == 0);
  CHECK(unread({.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .shape = {4}}, 1).second == 0);
}
