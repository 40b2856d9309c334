#include "runtime/collectives/shm/route_table.hpp"

#include <map>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using std::chrono::microseconds;

namespace {

constexpr std::size_t kMegabyte = 1u << 20, kSharedBytes = 2 * kMegabyte;
constexpr int kOfWay =
    2 + RouteTable::kTries;  // messages of a megabyte that try one way: two write all of the shared memory
constexpr Ways kSlotsOrRead{Way::kSlots, Way::kStreamedSlots, Way::kRead};

using Times = std::map<Way, microseconds>;

Times taking(int slots, int streamed, int read) {
  return {{Way::kSlots, microseconds(slots)},
          {Way::kStreamedSlots, microseconds(streamed)},
          {Way::kRead, microseconds(read)}};
}

/// The tries of a message's size until there are no more.
std::vector<Way> try_all(RouteTable& table, Kind kind, std::size_t bytes, Ways possible, const Times& times) {
  std::vector<Way> ways;
  while (const auto way = table.next_try(kind, bytes, possible)) {
    ways.push_back(*way);
    table.add(kind, bytes, *way, times.at(*way));
  }
  return ways;
}

std::map<Way, int> counted(const std::vector<Way>& ways) {
  std::map<Way, int> counts;
  for (const Way way : ways) ++counts[way];
  return counts;
}

}  // namespace

TEST_CASE("every way is tried until it has written all shared memory and a few times more", "[runtime][unit]") {
  RouteTable table(kSharedBytes);
  const auto tried = try_all(table, Kind::kAllreduce, kMegabyte, kSlotsOrRead, taking(3, 2, 1));
  CHECK(counted(tried) ==
        std::map<Way, int>{{Way::kSlots, kOfWay}, {Way::kStreamedSlots, kOfWay}, {Way::kRead, kOfWay}});
  CHECK(std::is_sorted(tried.begin(), tried.end()));  // one way after the other
  CHECK(table.fastest(Kind::kAllreduce, kMegabyte, kSlotsOrRead) == Way::kRead);
}

TEST_CASE("large messages are tried less often, and once where that takes much longer", "[runtime][unit]") {
  RouteTable table(kSharedBytes);
  constexpr std::size_t kLarge = RouteTable::kLargeBytes;
  constexpr int kOften = RouteTable::kTriesOfLarge;
  for (const int time : {30, 10}) table.add(Kind::kAllreduce, kLarge, Way::kSlots, microseconds(time));
  const auto tried = try_all(table, Kind::kAllreduce, kLarge, kSlotsOrRead, taking(0, 13, 12));
  CHECK(counted(tried) == std::map<Way, int>{{Way::kStreamedSlots, 1}, {Way::kRead, kOften}});
  CHECK(table.fastest(Kind::kAllreduce, kLarge, kSlotsOrRead) == Way::kSlots);
}

TEST_CASE("what is not possible is neither tried nor chosen", "[runtime][unit]") {
  RouteTable table(kSharedBytes);
  constexpr Ways kWithoutReading{Way::kSlots, Way::kStreamedSlots};
  const auto tried = try_all(table, Kind::kAllgather, kMegabyte, kWithoutReading, taking(3, 2, 1));
  CHECK(counted(tried) == std::map<Way, int>{{Way::kSlots, kOfWay}, {Way::kStreamedSlots, kOfWay}});
  CHECK(table.fastest(Kind::kAllgather, kMegabyte, kWithoutReading) == Way::kStreamedSlots);
  try_all(table, Kind::kAllgather, kMegabyte, kSlotsOrRead, taking(3, 2, 1));
  CHECK(table.fastest(Kind::kAllgather, kMegabyte, kWithoutReading) == Way::kStreamedSlots);
}

TEST_CASE("an output is written past the caches with the faster way of writing slots", "[runtime][unit]") {
  const bool is_streamed = GENERATE(false, true), pays = GENERATE(false, true);
  RouteTable table(kSharedBytes);
  constexpr Ways kAll{Way::kOneStep, Way::kStreamedOneStep, Way::kSlots,   Way::kStreamedSlots,
                      Way::kRead,    Way::kStreamedOutput,  Way::kStreamed};
  Times all = is_streamed ? taking(4, 3, 9) : taking(3, 4, 9);
  all[Way::kOneStep] = all[Way::kStreamedOneStep] = microseconds(9);
  const Way slots = is_streamed ? Way::kStreamedSlots : Way::kSlots;
  const Way with_output = is_streamed ? Way::kStreamed : Way::kStreamedOutput;
  all[with_output] = microseconds(pays ? 2 : 5);
  CHECK(try_all(table, Kind::kAlltoall, kMegabyte, kAll, all).back() == with_output);
  CHECK(table.fastest(Kind::kAlltoall, kMegabyte, kAll) == (pays ? with_output : slots));
}

TEST_CASE("kinds and powers of two are measured apart", "[runtime][unit]") {
  RouteTable table(kSharedBytes);
  try_all(table, Kind::kBroadcast, kMegabyte, kSlotsOrRead, taking(2, 2, 1));
  try_all(table, Kind::kReducescatter, kMegabyte, kSlotsOrRead, taking(1, 2, 2));
  CHECK(table.fastest(Kind::kBroadcast, kMegabyte, kSlotsOrRead) == Way::kRead);
  CHECK(table.fastest(Kind::kReducescatter, kMegabyte, kSlotsOrRead) == Way::kSlots);
  CHECK_FALSE(table.next_try(Kind::kBroadcast, 2 * kMegabyte - 1, kSlotsOrRead));
  CHECK(table.next_try(Kind::kBroadcast, 2 * kMegabyte, kSlotsOrRead) == Way::kSlots);
}

TEST_CASE("a way's last tries count, but for the slowest ones", "[runtime][unit]") {
  RouteTable table(kSharedBytes);
  for (const int time : {1, 1, 900, 5, 5, 5, 5, 800})
    table.add(Kind::kAllgather, kMegabyte, Way::kSlots, microseconds(time));
  for (const int time : {900, 900, 4, 4, 4, 4, 4, 4})
    table.add(Kind::kAllgather, kMegabyte, Way::kStreamedSlots, microseconds(time));
  CHECK(table.fastest(Kind::kAllgather, kMegabyte, {Way::kSlots, Way::kStreamedSlots}) == Way::kStreamedSlots);
}

TEST_CASE("a way is settled, at first for few messages, then for many, and then all are tried again",
          "[runtime][unit]") {
  RouteTable table(kSharedBytes);
  CHECK_FALSE(table.take_settled(Kind::kAlltoall, kMegabyte));
  try_all(table, Kind::kAlltoall, kMegabyte, kSlotsOrRead, taking(2, 1, 2));
  constexpr int kFirst = RouteTable::kFirstSettledMessages, kLast = RouteTable::kSettledMessages;
  for (const int times : {kFirst, 4 * kFirst, 16 * kFirst, kLast, kLast}) {
    table.settle(Kind::kAlltoall, kMegabyte, Way::kStreamedSlots);
    const int all = times * static_cast<int>(RouteTable::kWays) * kOfWay;
    for (int i = 0; i < all; ++i) REQUIRE(table.take_settled(Kind::kAlltoall, kMegabyte) == Way::kStreamedSlots);
    CHECK_FALSE(table.take_settled(Kind::kAlltoall, kMegabyte));
    try_all(table, Kind::kAlltoall, kMegabyte, kSlotsOrRead, taking(1, 2, 2));
    CHECK(table.fastest(Kind::kAlltoall, kMegabyte, kSlotsOrRead) == Way::kSlots);
  }
}

TEST_CASE("what another job has found is taken at once, tried again soon, and told only when that confirms it",
          "[runtime][unit]") {
  RouteTable table(kSharedBytes);
  const RouteTable::Found expected{Kind::kAllreduce, kMegabyte, Way::kStreamedSlots};
  table.expect(expected);
  CHECK_FALSE(table.next_try(Kind::kAllreduce, kMegabyte, kSlotsOrRead));
  CHECK(table.next_try(Kind::kAllgather, kMegabyte, kSlotsOrRead));
  CHECK(table.fastest(Kind::kAllreduce, kMegabyte, kSlotsOrRead) == Way::kStreamedSlots);
  table.settle(Kind::kAllreduce, kMegabyte, Way::kStreamedSlots);
  CHECK(table.found().empty());
  while (table.take_settled(Kind::kAllreduce, kMegabyte)) {
  }
  try_all(table, Kind::kAllreduce, kMegabyte, kSlotsOrRead, taking(3, 2, 4));
  table.settle(Kind::kAllreduce, kMegabyte, table.fastest(Kind::kAllreduce, kMegabyte, kSlotsOrRead));
  CHECK(table.found() == std::vector<RouteTable::Found>{expected});
}

TEST_CASE("a way that is not there any more is not expected", "[runtime][unit]") {
  RouteTable table(kSharedBytes);
  table.expect({Kind::kAllreduce, kMegabyte, Way::kRead});
  CHECK(table.fastest(Kind::kAllreduce, kMegabyte, kSlotsOrRead) == Way::kRead);
  CHECK(table.fastest(Kind::kAllreduce, kMegabyte, {Way::kSlots, Way::kStreamedSlots}) == Way::kSlots);
}

TEST_CASE("what the first tries have shown of large messages is told, since there may be few", "[runtime][unit]") {
  RouteTable table(kSharedBytes);
  table.settle(Kind::kAllreduce, RouteTable::kLargeBytes / 2, Way::kRead);
  table.settle(Kind::kAllreduce, RouteTable::kLargeBytes, Way::kRead);
  CHECK(table.found() == std::vector<RouteTable::Found>{{Kind::kAllreduce, RouteTable::kLargeBytes, Way::kRead}});
}
