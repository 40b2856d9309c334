#include "launcher/output/status_line.hpp"

#include "tests/catch.hpp"

using namespace runjob;
using HostPhase = StatusLine::HostPhase;

namespace {

StatusLine four_hosts() {
  std::vector<Host> hosts;
  for (const char* name : {"s1", "s2", "s3", "s4"}) hosts.push_back({name, 2, "", {}, "", {}});
  return StatusLine(allocate(hosts, std::nullopt));
}

}  // namespace

TEST_CASE("the status names the hosts that are waited for, and what for", "[unit]") {
  StatusLine status = four_hosts();
  CHECK(status.text() ==
        "hosts: 0 of 4 ready, waiting for s1 (waiting for its turn), s2 (waiting for its turn), s3 (waiting for its "
        "turn) "
        "and 1 more");
  status.host(0, HostPhase::kReady);
  status.host(1, HostPhase::kResolving);
  status.host(2, HostPhase::kConnecting);
  status.host(3, HostPhase::kStartingAgent);
  CHECK(status.text() ==
        "hosts: 1 of 4 ready, waiting for s2 (looking up its address), s3 (connecting), s4 (starting the agent)");
}

TEST_CASE("then the ranks that have not started, then those that have not called init()", "[unit]") {
  StatusLine status = four_hosts();
  for (int host = 0; host < 4; ++host) status.host(host, HostPhase::kReady);
  for (const int rank : {0, 1, 2, 4, 5}) status.rank_started(rank);
  CHECK(status.text() == "ranks: 5 of 8 started, waiting for rank 3 on s2, ranks 6, 7 on s4");
  for (const int rank : {3, 6, 7}) status.rank_started(rank);
  CHECK_FALSE(status.waiting());  // they may never call init()
  CHECK(status.text().empty());
  for (const int rank : {7, 0, 7}) status.rank_joined(rank);
  CHECK(status.text() == "init: 2 of 8 ranks, waiting for rank 1 on s1, ranks 2, 3 on s2, ranks 4, 5 on s3 and 1 more");
  for (int rank = 0; rank < 8; ++rank) status.rank_joined(rank);
  CHECK(status.text().empty());
}

TEST_CASE("a job that ends has no status", "[unit]") {
  StatusLine status = four_hosts();
  status.rank_joined(0);
  CHECK(status.waiting());
  status.rank_ended(1);
  CHECK_FALSE(status.waiting());
  CHECK(status.text().empty());
}
