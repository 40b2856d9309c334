#include "launcher/supervision/rank_place.hpp"

#include "hostfile/parse_hosts.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

TEST_CASE("a rank's place and the job's topology are those of the allocation", "[unit]") {
  const Allocation allocation = allocate(parse_host_list("s1:3,s2:2"), std::nullopt);
  const rendezvous::Place place = rank_place(allocation, allocation.placements.at(4), 1500ms);
  rendezvous::Place expected;
  expected.rank = 4;
  expected.size = 5;
  expected.local_rank = 1;
  expected.local_size = 2;
  expected.cross_rank = 1;
  expected.cross_size = 2;
  expected.hostname = "s2";
  expected.start_timeout_seconds = 1.5;
  CHECK(place == expected);
  const rendezvous::Topology topology = topology_of(allocation);
  CHECK(topology.hosts == std::vector<int>{0, 0, 0, 1, 1});
  CHECK(topology.hostnames == std::vector<std::string>{"s1", "s2"});
  const std::vector<rendezvous::Member> members = members_of(allocation);
  REQUIRE(members.size() == 5);
  CHECK(members[2].host == "s1");
  CHECK(members[3].host == "s2");
}
