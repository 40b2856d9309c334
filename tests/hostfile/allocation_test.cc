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
                    "2 ranks do not fit into 1 slot on 1 host (a:1); ask for at most 1 or give more slots");
  CHECK_THROWS_WITH(allocate(hosts, 0), "0 ranks cannot be started; ask for at least 1");
  CHECK_THROWS_WITH(allocate(hosts, -3), "-3 ranks cannot be started; ask for at least 1");
  CHECK_THROWS_WITH(allocate({}, 1), "there is no host to start ranks on; name at least one");
  CHECK_THROWS_WITH(allocate(parse_host_list("s[1-100]:65536"), std::nullopt),
                    "6553600 ranks are more than the 1000000 that one job may have; ask for fewer");
}
