#include "runtime/collectives/hierarchical/exchanges/link_costs.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

/// A gigabit network.
constexpr LinkCosts kGigabit{30e-6, 80e-6, 117e6, 4e9, 1};

AllreduceWay way(int hosts, std::size_t bytes) {
  return choose_allreduce(kGigabit, hosts, bytes, bytes, 16u << 10);
}

}  // namespace

TEST_CASE("short tensors double or halve, whichever costs less, and long ones go round the ring", "[runtime][unit]") {
  for (const int hosts : {2, 3, 4, 8, 16, 64}) {
    INFO(hosts << " hosts");
    CHECK(way(hosts, 8) == AllreduceWay::kDoubling);
    CHECK(way(hosts, 256u << 20) == AllreduceWay::kRing);
  }
  CHECK(way(8, 64u << 10) == AllreduceWay::kHalving);
  CHECK(way(64, 512u << 10) == AllreduceWay::kHalving);
  CHECK(way(2, 64u << 10) == AllreduceWay::kRing);
  const LinkCosts slow_short{1, 1e-9, 1e12, 1e12, 1};
  CHECK(choose_allreduce(slow_short, 8, 8, 8, 1024) == AllreduceWay::kHalving);
}

TEST_CASE("what the links cost does not move the line between the orders of addition", "[runtime][unit]") {
  for (const LinkCosts& costs : {kGigabit, LinkCosts{1, 1, 1, 1, 1}, LinkCosts{1e-9, 1e-9, 1e12, 1e12, 4}}) {
    CHECK(choose_allreduce(costs, 4, (128u << 10) - 1, (128u << 10) - 1, 1024) == AllreduceWay::kHalving);
    CHECK(choose_allreduce(costs, 4, 128u << 10, 128u << 10, 1024) == AllreduceWay::kRing);
  }
}

TEST_CASE("a tensor that does not fit a short message never doubles", "[runtime][unit]") {
  const LinkCosts costs{1e-9, 1, 1e12, 1e12, 1};
  CHECK(choose_allreduce(costs, 8, 1024, 2048, 1024) == AllreduceWay::kDoubling);
  CHECK(choose_allreduce(costs, 8, 1025, 2050, 1024) == AllreduceWay::kHalving);
}

TEST_CASE("hosts beyond a power of two cost two more steps", "[runtime][unit]") {
  CHECK(doubling_seconds(kGigabit, 8, 0) == Approx(3 * 30e-6));
  CHECK(doubling_seconds(kGigabit, 9, 0) == Approx(5 * 30e-6));
  CHECK(halving_seconds(kGigabit, 4, 117000000) == Approx(4 * 80e-6 + 1.5 + 3 * 117e6 / 4e9));
}

TEST_CASE("only two lone ranks exchange directly, and no short tensors", "[runtime][unit]") {
  CHECK(exchanges_directly(true, 2, 64u << 10, 16u << 10));
  CHECK_FALSE(exchanges_directly(false, 2, 64u << 10, 16u << 10));
  CHECK_FALSE(exchanges_directly(true, 3, 64u << 10, 16u << 10));
  CHECK_FALSE(exchanges_directly(true, 2, 16u << 10, 16u << 10));
  CHECK(exchanges_directly(true, 2, 64u << 20, 16u << 10));
}

TEST_CASE("a round carries less data over a slower network, and for more ranks of other hosts", "[runtime][unit]") {
  LinkCosts ten_gigabit = kGigabit;
  ten_gigabit.bytes_per_second *= 10;
  CHECK(most_data_in_round(kGigabit, 2) == 7020);
  CHECK(most_data_in_round(ten_gigabit, 2) == 70200);
  CHECK(most_data_in_round(ten_gigabit, 4) == 23400);
  // Two lone ranks send each other what a collective would send.
  CHECK(most_data_in_round(kGigabit, 1) > (1u << 30));
}
