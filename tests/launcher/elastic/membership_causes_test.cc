#include "launcher/elastic/membership.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/elastic/scripted_membership.hpp"

using namespace runjob;
using namespace std::chrono_literals;
using Catch::Matchers::StartsWith;

// The cause of a generation, in whichever order its members report and end.

namespace {

/// Three ranks on two hosts, all in elastic.run().
struct ThreeRanks : ScriptedMembership {
  explicit ThreeRanks(ElasticSettings settings = elastic(1, 3)) : ScriptedMembership("s1:2,s2:1", std::move(settings)) {
    for (const Placement& each : allocation.placements) membership.entered(each.rank, now);
  }
  void failing(int process, bool own, const std::string& reason) { membership.failing(process, own, reason); }
  void fails(int process) { membership.exited(process, {false, "exited with status 1"}, now); }
  std::string cause() const { return formed.empty() ? "" : formed.back().cause; }
};

}  // namespace

TEST_CASE("the error of the rank that failed is the cause, though the others have lost it before", "[unit]") {
  ThreeRanks job;
  job.ready(0, 4);
  CHECK(job.notices.back().reason == "rank 0 on s1: it lost its connection to another rank");
  job.pass(3s);
  job.ready(1, 4, "HorovodInternalError: of the program");
  job.ready(2, 4);
  CHECK(job.cause() == "rank 1 on s1: HorovodInternalError: of the program");
}

TEST_CASE("an error that came of a reported loss is not the cause", "[unit]") {
  ThreeRanks job;
  job.failing(2, false, "the connection to rank 0 has ended");
  job.ready(2, 4, "ConnectError: the connection to rank 0 has ended");
  job.pass(20s);
  job.ready(0, 4, "OSError: no data");
  job.ready(1, 4);
  CHECK(job.cause() == "rank 0 on s1: OSError: no data");
}

TEST_CASE("the end of a rank is the cause, with the error that it has reported", "[unit]") {
  ThreeRanks job;
  job.failing(1, true, "ValueError: a sample without a label");
  job.ready(0, 4);
  job.ready(2, 4);
  CHECK(job.formed.empty());
  job.fails(1);
  CHECK(job.cause() == "rank 1 on s1 exited with status 1: ValueError: a sample without a label");
}

TEST_CASE("a victim that ends before the rank that failed is not the cause", "[unit]") {
  ThreeRanks job;
  job.failing(1, true, "ValueError: a sample without a label");
  job.failing(2, false, "rank 1 on s1 failed");
  job.fails(2);
  job.ready(0, 4);
  SECTION("the other one ends too") {
    job.fails(1);
    CHECK(job.cause() == "rank 1 on s1 exited with status 1: ValueError: a sample without a label");
  }
  SECTION("the other one comes back") {
    job.ready(1, 4);
    CHECK(job.cause() == "rank 2 on s2 exited with status 1");
  }
}

TEST_CASE("a lost host is the cause, and no failure of a rank's own, though its ranks were missed before", "[unit]") {
  ElasticSettings settings = elastic(1, 3);
  settings.cooldown = Cooldown{1s, 1s};
  ThreeRanks job(settings);
  for (int i = 0; i < 6; ++i) {
    const int on_s2 = i == 0 ? 2 : job.started.back().process;
    job.ready(0, 0);
    job.membership.host_lost(1, "lost the agent on s2: it has sent nothing for 5 s", job.now);
    job.ready(1, 0);
    CHECK_THAT(job.cause(), StartsWith("lost the agent on s2: it has sent nothing for 5 s; s2 is excluded for"));
    CHECK(job.membership.roll().rank_of(on_s2) == -1);
    job.pass(1s);
    job.ready(job.started.back().process, -1);
    job.ready(0, 0);
    job.ready(1, 0);
    CHECK(job.members().size() == 3);
  }
  CHECK(job.finished.empty());
}

TEST_CASE("two hosts that are lost before the next generation are both named", "[unit]") {
  ScriptedMembership job("s1:1,s2:1,s3:2", elastic(1, 4));
  for (const int process : {0, 1, 2, 3}) job.membership.entered(process, job.now);
  job.membership.host_lost(2, "lost the agent on s3: it has sent nothing for 5 s", job.now);
  job.ready(0, 4);
  CHECK(job.formed.empty());
  job.membership.host_lost(1, "lost the agent on s2: it has sent nothing for 5 s", job.now);
  REQUIRE(job.formed.size() == 1);
  CHECK(job.formed.back().cause ==
        "lost the agent on s3: it has sent nothing for 5 s; s3 is excluded for ever; "
        "lost the agent on s2: it has sent nothing for 5 s; s2 is excluded for ever");
  CHECK(job.formed.back().left == std::vector<std::string>{"rank 2 on s3", "rank 3 on s3", "rank 1 on s2"});
}

TEST_CASE("an error is the cause although the hosts have changed before", "[unit]") {
  ThreeRanks job;
  job.membership.set_host(1, "s2", 0, job.now);
  CHECK(job.notices.back().ended < 0);
  job.ready(0, 4, "HorovodInternalError: of the program");
  CHECK(job.notices.back().ended == 0);
  job.ready(1, 4);
  job.ended(2);
  CHECK(job.cause() == "rank 0 on s1: HorovodInternalError: of the program");
}

TEST_CASE("a rank that does not come back is the cause when the others have only lost it", "[unit]") {
  ThreeRanks job;
  job.ready(0, 4);
  job.ready(2, 4);
  job.pass(30s);
  CHECK(job.cause() == "rank 1 on s1 has not come back within 30 s after its generation ended");
}

TEST_CASE("a rank of which nobody knew yet that it had entered is the cause", "[unit]") {
  ScriptedMembership job("s1:1,s2:1,s3:1", elastic(3, 3));
  job.membership.entered(0, job.now);
  job.membership.entered(2, job.now);
  job.ready(0);  // has lost rank 1
  job.killed(1);
  job.ready(2);
  const std::string cause = "rank 1 on s2 was killed by signal 9 (SIGKILL)";
  REQUIRE(!job.started.empty());
  job.ready(job.started.back().process);
  REQUIRE(job.formed.size() == 1);
  CHECK_THAT(job.formed[0].cause, StartsWith(cause));
  CHECK(job.formed[0].left == std::vector<std::string>{"rank 1 on s2"});
  CHECK(job.warnings.size() == 1);  // about too few ranks
  CHECK(job.warnings[0].find(cause) != std::string::npos);
}

TEST_CASE("a rank's own error is the cause, also when nobody knew yet that it had entered", "[unit]") {
  ScriptedMembership job("s1:1,s2:1,s3:1", elastic(3, 3));
  job.membership.entered(0, job.now);
  job.ready(0);  // has lost rank 1
  SECTION("that it sends before its request") {
    job.membership.failing(1, /*own=*/true, "OSError: no data");
  }
  SECTION("that comes with its request") {}
  job.ready(1, 0, "OSError: no data");
  job.ready(2);
  REQUIRE(job.formed.size() == 1);
  CHECK(job.formed[0].cause == "rank 1 on s2: OSError: no data");
}

TEST_CASE("the loss of a host is that of its ranks, also when nobody knew yet that they had entered", "[unit]") {
  ScriptedMembership job("s1:1,s2:1,s3:1", elastic(2, 3));
  job.membership.entered(0, job.now);
  job.membership.entered(2, job.now);
  job.ready(0);  // has lost rank 1
  job.membership.host_lost(1, "s2 is unreachable", job.now);
  job.ready(2);
  REQUIRE(job.formed.size() == 1);
  CHECK_THAT(job.formed[0].cause, StartsWith("s2 is unreachable"));
  CHECK(job.formed[0].left == std::vector<std::string>{"rank 1 on s2"});
}

TEST_CASE("a process that waits for the next generation and is lost is not the cause", "[unit]") {
  ThreeRanks job;
  job.ready(0, 4, "OSError: no data");
  job.killed(0);
  job.ready(1, 4);
  job.ready(2, 4);
  CHECK(job.cause() == "rank 0 on s1: OSError: no data");
}

TEST_CASE("reports of one generation have no effect on the next one", "[unit]") {
  ThreeRanks job;
  for (const int process : {0, 1}) job.failing(process, false, "rank 2 on s2 has left");
  job.killed(2);
  job.ready(0, 4);
  job.ready(1, 4);
  CHECK_THAT(job.cause(), StartsWith("rank 2 on s2 was killed by signal 9"));
  job.fails(1);
  job.ready(0, 4);
  CHECK_THAT(job.cause(), StartsWith("rank 1 on s1 exited with status 1"));
}

TEST_CASE("under the name horovodrun the end has Horovod's words", "[unit]") {
  ElasticSettings settings = elastic(3, 3);
  settings.as_horovod = true;
  settings.rank_restarts = 0;
  SECTION("too few ranks after the time limit") {
    settings.cooldown = Cooldown{3600s, 3600s};
    ThreeRanks job(settings);
    job.killed(2);
    job.ready(0);
    job.ready(1);
    job.pass(600s);
    REQUIRE(job.finished.size() == 1);
    CHECK(job.finished[0] ==
          "Timed out waiting for minimum number of slots to become available. Please check that you have enough "
          "resources to run at least 3 Horovod processes. Timeout after 600 seconds. 2 of at least 3 ranks are ready "
          "after the 600 s of --elastic-timeout: rank 2 on s2 was killed by signal 9 (SIGKILL); s2 is excluded for "
          "3600 s");
  }
  SECTION("no host can take another rank") {
    ThreeRanks job(settings);
    job.killed(2);
    job.ready(0);
    job.ready(1);
    REQUIRE(job.finished.size() == 1);
    CHECK_THAT(job.finished[0],
               StartsWith("Horovod detected that one or more processes exited with non-zero status: 2 of at least 3"));
  }
}

TEST_CASE("a generation redoes the most steps that a member with the newest commit has begun after it", "[unit]") {
  ScriptedMembership job("s1:4", elastic(1, 4));
  for (const int process : {0, 1, 2, 3}) job.membership.entered(process, job.now);
  job.killed(0);
  job.ready(1, 6, "", 12);  // its older commit does not count
  job.ready(2, 7, "", 2);
  job.ready(3, 7, "", 3);
  CHECK(job.formed.back().steps_redone == 3);
  job.killed(1);
  job.ready(2, 7, "", 0);
  job.ready(3, 7);
  CHECK(job.formed.back().steps_redone == 0);
  job.killed(3);
  job.ready(2, 8);
  CHECK(job.formed.back().steps_redone == -1);
}
