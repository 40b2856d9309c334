#include "hostfile/allocation.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "hostfile/parse_hosts.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

/// "host:local_rank/local_size:cross_rank/cross_size" of every rank, in rank order.
std::string show(const Allocation& allocation) {
  std::string text;
  for (const Placement& p : allocation.placements) {
    text += fmt::format("{}{}:{}/{}:{}/{}", text.empty() ? "" : " ",
                        allocation.hosts[static_cast<std::size_t>(p.host)].name, p.local_rank, p.local_size,
                        p.cross_rank, p.cross_size);
  }
  return text;
}

}  // namespace

TEST_CASE("ranks fill each host up to its slots, in order", "[unit]") {
  struct Row {
    const char* hosts;
    std::optional<int> np;
    const char* placements;
  };
  const std::vector<Row> table = {
      {"a", std::nullopt, "a:0/1:0/1"},
      {"a:4", 2, "a:0/2:0/1 a:1/2:0/1"},
      {"a:2,b:2", std::nullopt, "a:0/2:0/2 a:1/2:0/2 b:0/2:1/2 b:1/2:1/2"},
      {"a:2,b:2", 3, "a:0/2:0/2 a:1/2:0/1 b:0/1:1/2"},
      {"a:2,b:2", 2, "a:0/2:0/1 a:1/2:0/1"},
      // unequal slots: local rank 1 exists on a and c only, local rank 2 on c only
      {"a:2,b:1,c:3", std::nullopt, "a:0/2:0/3 a:1/2:0/2 b:0/1:1/3 c:0/3:2/3 c:1/3:1/2 c:2/3:0/1"},
      {"a:1,b:3", std::nullopt, "a:0/1:0/2 b:0/3:1/2 b:1/3:0/1 b:2/3:0/1"},
      // a host named twice is one host, so its ranks have local ranks of one sequence
      {"a:1,a:1", std::nullopt, "a:0/2:0/1 a:1/2:0/1"},
      {"a:1,b:1,a:1", std::nullopt, "a:0/2:0/2 a:1/2:0/1 b:0/1:1/2"},
  };
  for (const Row& row : table) {
    INFO(row.hosts);
    const Allocation allocation = allocate(parse_host_list(row.hosts), row.np);
    CHECK(show(allocation) == row.placements);
    for (std::size_t r = 0; r < allocation.placements.size(); ++r) {
      CHECK(allocation.placements[r].rank == static_cast<int>(r));
      CHECK(allocation.placements[r].size == static_cast<int>(allocation.placements.size()));
    }
  }
}

TEST_CASE("ranks can be placed on hosts in turn, or as many on each", "[unit]") {
  struct Row {
    std::string hosts;
    std::optional<int> np;
    std::string map_by;
    std::string placements;
  };
  const Row table[] = {
      {"a:2,b:2", std::nullopt, "node", "a:0/2:0/2 b:0/2:1/2 a:1/2:0/2 b:1/2:1/2"},
      {"a:3,b:1,c:2", std::nullopt, "node", "a:0/3:0/3 b:0/1:1/3 c:0/2:2/3 a:1/3:0/2 c:1/2:1/2 a:2/3:0/1"},
      {"a:2,b:2,c:2", 4, "node", "a:0/2:0/3 b:0/1:1/3 c:0/1:2/3 a:1/2:0/1"},
      {"a:2,b:2,c:2", 2, "node", "a:0/1:0/2 b:0/1:1/2"},
      {"a:4,b:2", std::nullopt, "ppr:2:node", "a:0/2:0/2 a:1/2:0/2 b:0/2:1/2 b:1/2:1/2"},
      {"a:4,b:4", 3, "ppr:2:node", "a:0/2:0/2 a:1/2:0/1 b:0/1:1/2"},
      {"a:4,b:4", 2, "ppr:1:node", "a:0/1:0/2 b:0/1:1/2"},
      {"a:2,b:2", 3, "slot", "a:0/2:0/2 a:1/2:0/1 b:0/1:1/2"},
  };
  for (const Row& row : table) {
    INFO(row.hosts << " " << row.map_by);
    CHECK(show(allocate(parse_host_list(row.hosts), row.np, parse_map_by(row.map_by, "--map-by"))) == row.placements);
  }
  const auto hosts = parse_host_list("a:2,b:1");
  const auto per_node = [](int ranks) { return MapBy{MapBy::Policy::kPerNode, ranks}; };
  CHECK_THROWS_WITH(allocate(hosts, std::nullopt, per_node(2)),
                    "2 ranks do not fit into the 1 slot of b; give it more, as in b:2");
  CHECK_THROWS_WITH(allocate(hosts, 3, per_node(1)), "3 ranks do not fit on 2 hosts with 1 each; ask for at most 2");
}

TEST_CASE("by node, the longest list of the most uneven hosts is no obstacle", "[unit]") {
  auto hosts = parse_host_list("s[1-99999]");
  hosts.push_back({"big", 65'536, "", {}, "", {}});
  const Allocation allocation = allocate(hosts, std::nullopt, {MapBy::Policy::kNode, 0});
  CHECK(allocation.placements.back().local_rank == 65'535);
}

TEST_CASE("a policy that is none of Open MPI's three is an error", "[unit]") {
  CHECK(parse_map_by("ppr:8:node", "") == MapBy{MapBy::Policy::kPerNode, 8});
  for (const char* bad : {"", "core", "core:PE=2", "ppr:2:socket", "ppr::node", "ppr:node", "node:ppr", ":PE=2"}) {
    INFO(bad);
    CHECK_THROWS_WITH(parse_map_by(bad, "-map-by"),
                      "-map-by: '" + std::string(bad) +
                          "' is not slot, node or ppr:N:node, which choose a rank's host; --bind-to core, numa or "
                          "socket chooses its place there");
  }
  CHECK_THROWS_WITH(parse_map_by("ppr:0:node", "-map-by"), "-map-by: '0' is not a whole number from 1 to 1000000");
}

TEST_CASE("Open MPI's modifiers of a policy are read, in any case", "[unit]") {
  CHECK(parse_map_by("slot:PE=2", "") == MapBy{MapBy::Policy::kSlot, 0, false, 2});
  CHECK(parse_map_by("node:oversubscribe", "") == MapBy{MapBy::Policy::kNode, 0, true, 0});
  CHECK(parse_map_by("slot:NOOVERSUBSCRIBE", "") == MapBy{});
  CHECK(parse_map_by("ppr:2:node:pe=4,OVERSUBSCRIBE", "") == MapBy{MapBy::Policy::kPerNode, 2, true, 4});
  CHECK_THROWS_WITH(parse_map_by("slot:PE=0", "--map-by"), ContainsSubstring("--map-by: '0' is not a whole number"));
}

TEST_CASE("with oversubscribe, slots are added to all hosts until the ranks fit", "[unit]") {
  const MapBy by_slot{MapBy::Policy::kSlot, 0, true, 0};
  const auto on = [](const Allocation& allocation) {
    std::string hosts;
    for (const Placement& p : allocation.placements) hosts += allocation.hosts[static_cast<std::size_t>(p.host)].name;
    return hosts;
  };
  CHECK(on(allocate(parse_host_list("a:2,b:1"), 8, by_slot)) == "aaaaabbb");
  CHECK(on(allocate(parse_host_list("a:2,b:2"), 3, by_slot)) == "aab");
  CHECK(on(allocate(parse_host_list("a:2,b:2"), std::nullopt, by_slot)) == "aabb");
  CHECK(on(allocate(parse_host_list("a,b"), 5, {MapBy::Policy::kNode, 0, true, 0})) == "ababa");
  CHECK(on(allocate(parse_host_list("a,b:4"), std::nullopt, {MapBy::Policy::kPerNode, 2, true, 0})) == "aabb");
  CHECK_THROWS_WITH(allocate({}, 1, by_slot), ContainsSubstring("there is no host"));
  CHECK_THROWS_AS(allocate(parse_host_list("a"), kMaxRanks + 2, by_slot), Error);
}

TEST_CASE("a host without a rank is left out, the others keep their options", "[unit]") {
  std::vector<Host> hosts = parse_hostfile("a slots=2 gpus=1,0 port=22\nb slots=2\n", "f");
  const Allocation allocation = allocate(hosts, 1);
  hosts.pop_back();
  CHECK(allocation.hosts == hosts);
}

TEST_CASE("what cannot be placed is an error that names the numbers", "[unit]") {
  const auto hosts = parse_host_list("a:2,b:2");
  CHECK_THROWS_WITH(allocate(hosts, 5),
                    "5 ranks do not fit into 4 slots on 2 hosts (a:2, b:2); ask for at most 4 or give more slots");
  CHECK_THROWS_WITH(allocate(parse_host_list("s[1-9]"), 10),
                    "10 ranks do not fit into 9 slots on 9 hosts (s1:1, s2:1, s3:1, s4:1, ...); ask for at most 9 "
                    "or give more slots");
  CHECK_THROWS_WITH(allocate(parse_host_list("a"), 2),
                    "2 ranks do not fit into 1 slot on 1 host (a:1); ask for at most 1 or give more slots, as in a:2");
  CHECK_THROWS_WITH(allocate(hosts, 0), "0 ranks cannot be started; ask for at least 1");
  CHECK_THROWS_WITH(allocate(hosts, -3), "-3 ranks cannot be started; ask for at least 1");
  CHECK_THROWS_WITH(allocate({}, 1), "there is no host to start ranks on; name at least one");
  CHECK_THROWS_WITH(allocate(parse_host_list("s[1-100]:65536"), std::nullopt),
                    "6553600 ranks are more than the 1000000 that one job may have; ask for fewer");
}
