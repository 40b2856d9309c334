#include "launcher/elastic/elastic_allocation.hpp"

#include "hostfile/parse_hosts.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("a static job's members have the places of a static job", "[unit]") {
  const Allocation fixed = allocate(parse_host_list("s1:2,s2:3"), std::nullopt);
  std::vector<Membership::Member> members;
  for (const Placement& each : fixed.placements) members.push_back({each.rank, each.host, each.local_rank, 0});
  std::vector<int> hosts;
  CHECK(elastic_allocation(fixed.hosts, members, hosts) == fixed);
  CHECK(hosts == std::vector<int>{0, 1});
}

TEST_CASE("a member keeps its local rank when another one of its host has gone", "[unit]") {
  const std::vector<Host> hosts = parse_host_list("s1:2,s2:2,s3:2");
  std::vector<int> job_hosts;
  // s2's second process is rank 0 because its commit is the newest; s1 has none left.
  const Allocation allocation = elastic_allocation(hosts, {{3, 1, 1, 7}, {4, 2, 0, 6}, {5, 2, 1, 6}}, job_hosts);
  CHECK(job_hosts == std::vector<int>{1, 2});
  CHECK(allocation.hosts.at(0).name == "s2");
  CHECK(allocation.placements.at(0) == Placement{0, 3, 1, 1, 0, 2, 0});
  CHECK(allocation.placements.at(1) == Placement{1, 3, 0, 2, 0, 1, 1});
  CHECK(allocation.placements.at(2) == Placement{2, 3, 1, 2, 1, 2, 1});
}
