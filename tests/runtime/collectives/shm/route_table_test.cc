#include "runtime/collectives/shm/route_table.hpp"

#include <map>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using std::chrono::microseconds;

namespace {

constexpr std::size_t kMegabyte = 1u << 20, kSlotsBytes = 2 * kMegabyte;
constexpr int kOfWay = 2 + RouteTable::kTries;  // messages of a megabyte that try one way: two write all slots

struct Times {
  microseconds slots, streamed, read;
  microseconds of(Way way) const { return way == Way::kSlots ? slots : way == Way::kStreamedSlots ? streamed : read; }
};

/// The tries of a message's size until there are no more.
std::vector<Way> try_all(RouteTable& table, Kind kind, std::size_t bytes, bool can_read, const Times& times) {
  std::vector<Way> ways;
  while (const auto way = table.next_try(kind, bytes, can_read)) {
    ways.push_back(*way);
    table.add(kind, bytes, *way, times.of(*way));
  }
  return ways;
}

std::map<Way, int> counted(const std::vector<Way>& ways) {
  std::map<Way, int> counts;
  for (const Way way : ways) ++counts[way];
  return counts;
}

}  // namespace

TEST_CASE("every way is tried until it has written all slots and a few times more", "[runtime][unit]") {
  RouteTable table(kSlotsBytes);
  const auto tried =
      try_all(table, Kind::kAllreduce, kMegabyte, true, {microseconds(3), microseconds(2), microseconds(1)});
  CHECK(counted(tried) ==
        std::map<Way, int>{{Way::kSlots, kOfWay}, {Way::kStreamedSlots, kOfWay}, {Way::kRead, kOfWay}});
  CHECK(std::is_sorted(tried.begin(), tried.end()));  // one way after the other
  CHECK(table.fastest(Kind::kAllreduce, kMegabyte, true) == Way::kRead);
}

TEST_CASE("large messages are tried less often", "[runtime][unit]") {
  RouteTable table(kSlotsBytes);
  constexpr std::size_t kLarge = RouteTable::kLargeBytes;
  constexpr int kOften = RouteTable::kTriesOfLarge;
  for (const int time : {3, 1}) table.add(Kind::kAllreduce, kLarge, Way::kSlots, microseconds(time));
  const auto tried =
      try_all(table, Kind::kAllreduce, kLarge, true, {microseconds(9), microseconds(2), microseconds(2)});
  CHECK(counted(tried) == std::map<Way, int>{{Way::kStreamedSlots, kOften}, {Way::kRead, kOften}});
  CHECK(table.fastest(Kind::kAllreduce, kLarge, true) == Way::kSlots);
}

TEST_CASE("memory is not read for short messages, nor where it cannot be", "[runtime][unit]") {
  RouteTable table(kSlotsBytes);
  const Times times{microseconds(3), microseconds(2), microseconds(1)};
  CHECK(counted(try_all(table, Kind::kAllgather, kMegabyte, false, times)).count(Way::kRead) == 0);
  CHECK(table.fastest(Kind::kAllgather, kMegabyte, false) == Way::kStreamedSlots);
  CHECK(counted(try_all(table, Kind::kAllgather, RouteTable::kLeastReadBytes - 1, true, times)).count(Way::kRead) == 0);
  CHECK(counted(try_all(table, Kind::kAllgather, RouteTable::kLeastReadBytes, true, times)).count(Way::kRead) == 1);
}

TEST_CASE("kinds and powers of two are measured apart", "[runtime][unit]") {
  RouteTable table(kSlotsBytes);
  try_all(table, Kind::kBroadcast, kMegabyte, true, {microseconds(2), microseconds(2), microseconds(1)});
  try_all(table, Kind::kReducescatter, kMegabyte, true, {microseconds(1), microseconds(2), microseconds(2)});
  CHECK(table.fastest(Kind::kBroadcast, kMegabyte, true) == Way::kRead);
  CHECK(table.fastest(Kind::kReducescatter, kMegabyte, true) == Way::kSlots);
  CHECK_FALSE(table.next_try(Kind::kBroadcast, 2 * kMegabyte - 1, true));
  CHECK(table.next_try(Kind::kBroadcast, 2 * kMegabyte, true) == Way::kSlots);
}

TEST_CASE("the fastest of a way's last tries counts", "[runtime][unit]") {
  RouteTable table(kSlotsBytes);
  for (const int time : {1, 1, 900, 5, 800}) table.add(Kind::kAllgather, kMegabyte, Way::kSlots, microseconds(time));
  for (const int time : {9, 9, 6, 6, 6})
    table.add(Kind::kAllgather, kMegabyte, Way::kStreamedSlots, microseconds(time));
  CHECK(table.fastest(Kind::kAllgather, kMegabyte, false) == Way::kSlots);
}

TEST_CASE("a way is settled, at first for few messages, then for many, and then all are tried again",
          "[runtime][unit]") {
  RouteTable table(kSlotsBytes);
  CHECK_FALSE(table.take_settled(Kind::kAlltoall, kMegabyte));
  try_all(table, Kind::kAlltoall, kMegabyte, true, {microseconds(2), microseconds(1), microseconds(2)});
  for (const int times : {RouteTable::kFirstSettledMessages, 4 * RouteTable::kFirstSettledMessages,
                          RouteTable::kSettledMessages, RouteTable::kSettledMessages}) {
    table.settle(Kind::kAlltoall, kMegabyte, Way::kStreamedSlots);
    const int all = times * static_cast<int>(RouteTable::kWays) * kOfWay;
    for (int i = 0; i < all; ++i) REQUIRE(table.take_settled(Kind::kAlltoall, kMegabyte) == Way::kStreamedSlots);
    CHECK_FALSE(table.take_settled(Kind::kAlltoall, kMegabyte));
    try_all(table, Kind::kAlltoall, kMegabyte, true, {microseconds(1), microseconds(2), microseconds(2)});
    CHECK(table.fastest(Kind::kAlltoall, kMegabyte, true) == Way::kSlots);
  }
}

TEST_CASE("what another job has found is taken at once, tried again soon, and told only when that confirms it",
          "[runtime][unit]") {
  RouteTable table(kSlotsBytes);
  const RouteTable::Found expected{Kind::kAllreduce, kMegabyte, Way::kStreamedSlots};
  table.expect(expected);
  CHECK_FALSE(table.next_try(Kind::kAllreduce, kMegabyte, true));
  CHECK(table.next_try(Kind::kAllgather, kMegabyte, true));
  CHECK(table.fastest(Kind::kAllreduce, kMegabyte, true) == Way::kStreamedSlots);
  table.settle(Kind::kAllreduce, kMegabyte, Way::kStreamedSlots);
  CHECK(table.found().empty());
  while (table.take_settled(Kind::kAllreduce, kMegabyte)) {
  }
  try_all(table, Kind::kAllreduce, kMegabyte, true, {microseconds(3), microseconds(2), microseconds(4)});
  table.settle(Kind::kAllreduce, kMegabyte, table.fastest(Kind::kAllreduce, kMegabyte, true));
  CHECK(table.found() == std::vector<RouteTable::Found>{expected});
}

TEST_CASE("a way that is not there any more is not expected", "[runtime][unit]") {
  RouteTable table(kSlotsBytes);
  table.expect({Kind::kAllreduce, kMegabyte, Way::kRead});
  CHECK(table.fastest(Kind::kAllreduce, kMegabyte, true) == Way::kRead);
  CHECK(table.fastest(Kind::kAllreduce, kMegabyte, false) == Way::kSlots);
}
