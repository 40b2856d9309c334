#include "runtime/collectives/hierarchical/exchanges/ring_exchange.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("a plan cuts each range of each chunk, and has the width of the longest chunk", "[runtime][unit]") {
  const RingPlan plan = RingPlan::cut({{{0, 10}, {20, 3}}, {}, {{10, 10}}}, 4);
  CHECK(plan.width == 4);
  CHECK(plan.segments[0] == std::vector<Range>{{0, 4}, {4, 4}, {8, 2}, {20, 3}});
  CHECK(plan.segment(2, 2) == Range{18, 2});
  CHECK(plan.segment(1, 0) == Range{});
}

TEST_CASE("adjacent ranges are one, empty ones none", "[runtime][unit]") {
  CHECK(joined({{0, 4}, {4, 0}, {4, 2}, {7, 1}}) == std::vector<Range>{{0, 6}, {7, 1}});
  CHECK(joined({}).empty());
  CHECK(overlap({2, 5}, {4, 9}) == Range{4, 3});
  CHECK(overlap({2, 2}, {4, 9}) == Range{});
}

TEST_CASE("segments are several to a chunk, neither tiny nor longer than a slot", "[runtime][unit]") {
  CHECK(segment_bytes(100, 256 << 10) == 32 << 10);
  CHECK(segment_bytes(400 << 10, 256 << 10) == 100 << 10);
  CHECK(segment_bytes(400 << 20, 256 << 10) == 256 << 10);
  CHECK(segment_bytes(400 << 20, 4096) == 4096);
}
