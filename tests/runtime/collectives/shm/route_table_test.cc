#include "runtime/collectives/shm/route_table.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;
using Way = RouteTable::Way;
using std::chrono::microseconds;

namespace {

/// The ways of the first calls, which take so long by the ring and by reading.
std::vector<Way> run(RouteTable& table, Kind kind, std::size_t bytes, int calls, microseconds ring, microseconds read) {
  std::vector<Way> ways;
  for (int i = 0; i < calls; ++i) {
    ways.push_back(table.next(kind, bytes));
    table.add(kind, bytes, ways.back(), ways.back() == Way::kRing ? ring : read);
  }
  return ways;
}

constexpr std::size_t kMegabyte = 1u << 20;

}  // namespace

TEST_CASE("both ways are tried in turn, then the faster one is taken", "[runtime][unit]") {
  RouteTable table;
  const std::vector<Way> trials{Way::kRing, Way::kRead, Way::kRing, Way::kRead, Way::kRing, Way::kRead};
  CHECK(run(table, Kind::kAllreduce, kMegabyte, 6, microseconds(10), microseconds(9)) == trials);
  CHECK_FALSE(table.is_open(Kind::kAllreduce, kMegabyte));
  CHECK(table.is_open(Kind::kAllreduce, 2 * kMegabyte));
  CHECK(run(table, Kind::kAllreduce, 2 * kMegabyte - 1, 3, microseconds(1), microseconds(1000)) ==
        std::vector<Way>(3, Way::kRead));
  CHECK(run(table, Kind::kAllreduce, 2 * kMegabyte, 6, microseconds(9), microseconds(9)) == trials);
  CHECK(table.next(Kind::kAllreduce, 2 * kMegabyte) == Way::kRing);
}

TEST_CASE("kinds are measured apart", "[runtime][unit]") {
  RouteTable table;
  run(table, Kind::kBroadcast, kMegabyte, 6, microseconds(2), microseconds(1));
  run(table, Kind::kReducescatter, kMegabyte, 6, microseconds(1), microseconds(2));
  CHECK(table.next(Kind::kBroadcast, kMegabyte) == Way::kRead);
  CHECK(table.next(Kind::kReducescatter, kMegabyte) == Way::kRing);
}

TEST_CASE("the fastest of a way's tries counts", "[runtime][unit]") {
  RouteTable table;
  for (const int time : {900, 5, 800}) {
    table.add(Kind::kAllgather, kMegabyte, Way::kRead, microseconds(time));
    table.add(Kind::kAllgather, kMegabyte, Way::kRing, microseconds(6));
  }
  CHECK(table.next(Kind::kAllgather, kMegabyte) == Way::kRead);
}
