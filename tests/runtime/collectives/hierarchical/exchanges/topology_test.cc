#include "runtime/collectives/hierarchical/exchanges/topology.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("hosts are numbered by their lowest ranks, whatever they are called", "[runtime][unit]") {
  const Topology topology(3, {7, 2, 7, 2, 2});
  CHECK(topology.hosts() == 2);
  CHECK(topology.host() == 1);
  CHECK(topology.local_rank() == 1);
  CHECK(topology.local_size() == 3);
  CHECK(topology.ranks(0) == std::vector<int>{0, 2});
  CHECK(topology.ranks(1) == std::vector<int>{1, 3, 4});
  CHECK(topology.columns() == 2);
  CHECK(topology.column(1) == std::vector<int>{2, 3});
}

TEST_CASE("columns reach all only if hosts have as many ranks each and are not too many", "[runtime][unit]") {
  CHECK(Topology(0, {0, 0, 1, 1}).columns_reach_all());
  CHECK(Topology(0, {0, 1, 0, 1}).columns_reach_all());
  CHECK_FALSE(Topology(0, {0, 0, 1}).columns_reach_all());
  std::vector<int> hosts;
  for (int host = 0; host < Topology::kMostMeshed; ++host) hosts.insert(hosts.end(), {host, host});
  CHECK(Topology(0, hosts).columns_reach_all());
  hosts.insert(hosts.end(), {-1, -1});
  CHECK_FALSE(Topology(0, hosts).columns_reach_all());
}

TEST_CASE("hosts of a cube and those beyond it know each other", "[runtime][unit]") {
  const Cube cube(6);
  CHECK(cube.size == 4);
  CHECK(cube.companion(0) == 4);
  CHECK(cube.companion(5) == 1);
  CHECK(cube.companion(2) == -1);
  CHECK(cube.neighbours(0) == std::vector<int>{1, 2, 4});
  CHECK(cube.neighbours(3) == std::vector<int>{1, 2});
  CHECK(cube.neighbours(5) == std::vector<int>{1});
  CHECK(Cube(8).size == 8);
  CHECK(Cube(1).neighbours(0).empty());
}
