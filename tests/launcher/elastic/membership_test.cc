#include "launcher/elastic/membership.hpp"

#include <fmt/format.h>

#include "tests/catch.hpp"
#include "tests/launcher/elastic/scripted_membership.hpp"

using namespace runjob;
using namespace std::chrono_literals;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

/// All processes of the first generation enter elastic.run().
void enter_all(ScriptedMembership& job) {
  for (const Placement& each : job.allocation.placements) job.membership.entered(each.rank, job.now);
}

}  // namespace

TEST_CASE("the others go on at once when a rank is lost, and a new process is started", "[unit]") {
  ScriptedMembership job("s1:2,s2:2", elastic(2, 4));
  enter_all(job);
  job.killed(2);
  REQUIRE(job.notices.size() == 1);
  CHECK(job.notices[0].ended == 0);
  CHECK(job.notices[0].reason == "rank 2 on s2 was killed by signal 9 (SIGKILL)");
  REQUIRE(job.started.size() == 1);
  CHECK(job.started[0].process == 4);
  CHECK(job.started[0].host == 1);
  CHECK(job.started[0].local_rank == 0);  // the lost one's
  CHECK(job.started[0].host_number.number == 1);
  CHECK(job.started[0].host_number.hosts == 2);
  job.now += 210ms;
  for (const int process : {3, 0}) job.ready(process, 5);
  CHECK(job.formed.empty());
  job.ready(1, 5);
  CHECK(job.members() == std::vector<int>{0, 1, 3});
  CHECK(job.formed.back().number == 1);
  CHECK(job.formed.back().told ==
        "rank 2 on s2 was killed by signal 9 (SIGKILL). The job goes on with 3 ranks (generation 1), which stood still "
        "for "
        "0.21 s.");
}

TEST_CASE("a newcomer that is ready is told to the members, who take it in at their next commit", "[unit]") {
  ScriptedMembership job("s1:2", elastic(1, 2));
  enter_all(job);
  job.killed(0);
  job.ready(1, 3);
  CHECK(job.members() == std::vector<int>{1});
  job.notices.clear();
  job.ready(2, -1);  // the replacement
  REQUIRE(job.notices.size() == 1);
  CHECK(job.notices[0].outdated == 1);
  CHECK(job.notices[0].ended == 0);
  CHECK(job.notices[0].only_added);
  CHECK(job.formed.size() == 1);
  job.ready(1, 4);
  CHECK(job.members() == std::vector<int>{1, 2});
  CHECK(job.membership.roll().rank_of(2) == 1);
  CHECK(job.formed.back().members.at(1).commit == -1);
  CHECK(job.formed.back().told ==
        "the hosts have changed: rank 1 on s1 has come. The job goes on with 2 ranks (generation 2), which stood still "
        "for "
        "0.00 s.");
  CHECK(job.formed.back().came == std::vector<std::string>{"rank 1 on s1"});
}

TEST_CASE("when all members are lost together, the user is told that their state is lost", "[unit]") {
  ScriptedMembership job("s1:2", elastic(1, 2));
  enter_all(job);
  job.killed(0);
  job.ready(1, 3);
  CHECK(job.warnings.empty());
  job.killed(1);
  job.ready(2, -1);
  CHECK(job.members() == std::vector<int>{2});
  REQUIRE(job.warnings.size() == 2);  // the first one: too few ranks are ready
  CHECK_THAT(job.warnings[1], ContainsSubstring("all ranks of the last generation were lost"));
}

TEST_CASE("rank 0 has the newest commit, and the others keep their order", "[unit]") {
  ScriptedMembership job("s1:4", elastic(1, 4));
  enter_all(job);
  job.killed(0);
  job.ready(1, 6);
  job.ready(2, 7);
  job.ready(3, 7);
  CHECK(job.members() == std::vector<int>{2, 1, 3});
}

TEST_CASE("a loss while a generation is formed begins the next one", "[unit]") {
  ScriptedMembership job("s1:4", elastic(1, 4));
  enter_all(job);
  job.killed(0);
  job.ready(1);
  job.killed(2);  // before it has come back
  job.ready(3);
  CHECK(job.members() == std::vector<int>{1, 3});
  job.killed(3);  // while it connects
  CHECK(job.notices.back().ended == 1);
  job.ready(1);
  CHECK(job.members() == std::vector<int>{1});
  CHECK(job.formed.back().number == 2);
}

TEST_CASE("a member that asks for the next generation ends the present one", "[unit]") {
  ScriptedMembership job("s1:2", elastic(2, 2));
  enter_all(job);
  job.ready(1, 2, "HorovodInternalError: a time limit");
  REQUIRE(job.notices.size() == 1);
  CHECK(job.notices[0].ended == 0);
  job.ready(0, 2);
  CHECK(job.members() == std::vector<int>{0, 1});
  CHECK(job.started.empty());
  CHECK_THAT(job.formed.back().told, ContainsSubstring("rank 1 on s1: HorovodInternalError: a time limit"));
}

TEST_CASE("a member that does not come back is ended and replaced", "[unit]") {
  ScriptedMembership job("s1:3", elastic(1, 3));
  enter_all(job);
  job.killed(0);
  job.ready(1);
  CHECK(job.membership.next_deadline(job.now) == job.now + 30s);
  job.pass(30s);
  CHECK(job.told_to_end == std::vector<int>{2});
  CHECK(job.members() == std::vector<int>{1});
  REQUIRE(job.warnings.size() == 1);
  CHECK_THAT(job.warnings[0], ContainsSubstring("rank 2 on s1 has not come back within 30 s"));
  CHECK(job.started.size() == 1);  // in place of process 0
  job.killed(2);                   // its place is free now
  CHECK(job.started.size() == 2);
  CHECK(job.membership.generation() == 1);
}

TEST_CASE("with too few ranks the others wait for new processes, and for no longer than the time limit", "[unit]") {
  ElasticSettings settings = elastic(2, 2);
  settings.timeout = 60s;
  ScriptedMembership job("s1:2", settings);
  enter_all(job);
  job.killed(1);
  job.ready(0);
  CHECK(job.formed.empty());
  REQUIRE(job.warnings.size() == 1);
  CHECK_THAT(job.warnings[0], ContainsSubstring("1 of at least 2 ranks are ready; waiting up to 60 s"));
  SECTION("a new process is ready in time") {
    job.ready(2, -1);
    CHECK(job.members() == std::vector<int>{0, 2});
    job.pass(60s);
    CHECK(job.finished.empty());
  }
  SECTION("no process is ready in time") {
    job.pass(60s);
    REQUIRE(job.finished.size() == 1);
    CHECK_THAT(job.finished[0], ContainsSubstring("--elastic-timeout"));
  }
}

TEST_CASE("the job ends when too few ranks are left and no host can take another one", "[unit]") {
  ElasticSettings settings = elastic(2, 2);
  settings.rank_restarts = 0;
  ScriptedMembership job("s1:2", settings);
  enter_all(job);
  job.killed(1);
  job.ready(0);
  REQUIRE(job.finished.size() == 1);
  CHECK_THAT(job.finished[0], ContainsSubstring("1 of at least 2 ranks are left"));
  CHECK_THAT(job.finished[0], ContainsSubstring("s1 is excluded for ever"));
}

TEST_CASE("an excluded host gets no process until its time has passed", "[unit]") {
  ElasticSettings settings = elastic(1, 2);
  settings.rank_restarts = 0;
  settings.cooldown = Cooldown{20s, 100s};
  ScriptedMembership job("s1:1,s2:1", settings);
  enter_all(job);
  job.killed(1);
  job.ready(0);
  CHECK(job.started.empty());
  CHECK_THAT(job.formed.back().cause, EndsWith("; s2 is excluded for 20 s"));
  CHECK(job.formed.back().told ==
        "rank 1 on s2 was killed by signal 9 (SIGKILL). The job goes on with 1 rank (generation 1), which stood still "
        "for "
        "0.00 s; no new process starts on s2 for 20 s.");
  job.pass(20s);
  REQUIRE(job.started.size() == 1);
  CHECK(job.started[0].host == 1);
}

TEST_CASE("a lost host is one loss, and its ranks are not replaced there", "[unit]") {
  ScriptedMembership job("s1:2,s2:2", elastic(1, 4));
  enter_all(job);
  job.membership.host_lost(1, "lost the agent on s2: not heard of for 5 s", job.now);
  CHECK(job.notices.size() == 1);
  job.ready(0);
  job.ready(1);
  CHECK(job.members() == std::vector<int>{0, 1});
  CHECK(job.started.empty());
  CHECK_THAT(job.formed.back().told, ContainsSubstring("lost the agent on s2: not heard of for 5 s"));
}

TEST_CASE("the processes of a host that is removed leave at their next commit", "[unit]") {
  ScriptedMembership job("s1:1,s2:1", elastic(1, 2));
  enter_all(job);
  job.membership.set_host(1, "s2", 0, job.now);
  REQUIRE(job.notices.size() == 1);
  CHECK(job.notices[0].outdated == 0);
  CHECK_FALSE(job.notices[0].only_added);
  CHECK(job.notices[0].leaving == std::vector<int>{1});
  job.ready(0, 1);
  CHECK(job.members() == std::vector<int>{0});
  CHECK(job.formed.back().left == std::vector<std::string>{"rank 1 on s2"});
  CHECK(job.hosts_left.empty());
  job.ended(1);
  CHECK(job.hosts_left == std::vector<int>{1});
  CHECK(job.started.empty());
  CHECK(job.finished.empty());
  job.ended(0);
  CHECK(job.finished == std::vector<std::string>{""});
}

TEST_CASE("the job ends well when all members have ended well, and nothing is formed after the first", "[unit]") {
  ScriptedMembership job("s1:2", elastic(1, 2));
  enter_all(job);
  CHECK(job.membership.absorbs());
  job.ended(0);
  CHECK_FALSE(job.membership.absorbs());
  job.killed(1);
  CHECK(job.notices.empty());
  CHECK(job.formed.empty());
  CHECK(job.finished == std::vector<std::string>{""});
}

TEST_CASE("until a process has entered elastic.run() the job is a static one", "[unit]") {
  ScriptedMembership job("s1:2", elastic(1, 2));
  CHECK_FALSE(job.membership.absorbs());
  job.killed(0);
  CHECK(job.notices.empty());
  CHECK(job.started.empty());
  job.killed(1);
  CHECK(job.finished.size() == 1);
}

TEST_CASE("a member that has not entered elastic.run() is not waited for", "[unit]") {
  ScriptedMembership job("s1:3", elastic(1, 3));
  job.membership.entered(0, job.now);
  job.membership.entered(1, job.now);
  job.killed(1);
  job.ready(0);
  CHECK(job.members() == std::vector<int>{0});
  job.ready(2, -1);
  CHECK(job.notices.back().outdated == 1);
}

TEST_CASE("a rank for which the others wait too long is replaced", "[unit]") {
  ScriptedMembership job("s1:2", elastic(1, 2));
  enter_all(job);
  job.membership.replace(1, "allreduce 'x' waits", job.now);
  CHECK(job.told_to_end == std::vector<int>{1});
  job.ready(0);
  CHECK(job.members() == std::vector<int>{0});
  CHECK_THAT(job.formed.back().told, ContainsSubstring("rank 1 on s1 stalled: allreduce 'x' waits"));
}

TEST_CASE("a reset limit counts a loss and the growth that replaces it once", "[unit]") {
  ElasticSettings settings = elastic(1, 2);
  settings.reset_limit = 1;
  ScriptedMembership job("s1:2", settings);
  enter_all(job);
  job.killed(1);
  job.ready(0, 1);
  job.ready(2, -1);
  job.ready(0, 2);
  CHECK(job.members() == std::vector<int>{0, 2});
  CHECK(job.finished.empty());
  job.killed(2);
  job.ready(0, 3);
  REQUIRE(job.finished.size() == 1);
  CHECK_THAT(job.finished[0], ContainsSubstring("--reset-limit"));
}

TEST_CASE("five generations in a row that fail without a commit end the job", "[unit]") {
  ElasticSettings settings = elastic(1, 2);
  settings.rank_restarts = 100;
  ScriptedMembership job("s1:2", settings);
  enter_all(job);
  for (int i = 0; i < 4; ++i) {
    job.ready(1, 0, "ValueError");
    job.ready(0, 0);
    if (i == 0) continue;  // the first one brought commit 0
    CHECK(job.finished.empty());
  }
  job.ready(1, 0, "ValueError");
  job.ready(0, 0);
  CHECK(job.finished.empty());
  job.ready(1, 0, "ValueError");
  job.ready(0, 0);
  REQUIRE(job.finished.size() == 1);
  CHECK_THAT(job.finished[0], ContainsSubstring("5 generations in a row"));
}

TEST_CASE("more ready processes than the job may have wait as spares", "[unit]") {
  ScriptedMembership job("s1:3", elastic(1, 2));
  enter_all(job);
  job.killed(0);
  job.ready(1);
  job.ready(2);
  CHECK(job.members() == std::vector<int>{1, 2});
  CHECK(job.started.empty());
}

TEST_CASE("a job grows on the slots that it has, as soon as some process has entered elastic.run()", "[unit]") {
  ElasticSettings settings = elastic(2, 4);
  settings.more_hosts = parse_host_list("s2:3");
  ScriptedMembership job("s1:2", settings);
  job.membership.begin(job.now);
  CHECK(job.started.empty());
  job.membership.entered(0, job.now);
  REQUIRE(job.started.size() == 2);
  CHECK(job.started[0].host == 1);
  CHECK(job.started[1].local_rank == 1);
  CHECK(job.started[1].rank == 3);
  CHECK(job.started[1].size == 4);
  enter_all(job);
  job.ready(2, -1);
  CHECK(job.notices.back().outdated == 0);
  job.ready(3, -1);
  job.ready(0, 5);
  job.ready(1, 5);
  CHECK(job.members() == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a spare waits from the start, and takes a lost member's place at once", "[unit]") {
  ElasticSettings settings = elastic(2, 4);
  settings.spares = 1;
  settings.more_hosts = parse_host_list("s2:1");
  ScriptedMembership job("s1:2", settings);
  job.membership.begin(job.now);
  REQUIRE(job.started.size() == 1);
  CHECK(job.started[0].host == 1);
  enter_all(job);
  job.ready(2, -1);
  CHECK(job.notices.empty());  // it is no growth
  job.killed(1);
  CHECK(job.started.size() == 2);
  job.ready(0, 3);
  CHECK(job.members() == std::vector<int>{0, 2});
  job.ready(3, -1);  // the next spare
  CHECK(job.notices.back().outdated < 1);
  CHECK(job.formed.size() == 1);
}

TEST_CASE("spares beyond those that were asked for let the job grow", "[unit]") {
  ElasticSettings settings = elastic(2, 3);
  settings.spares = 1;
  settings.more_hosts = parse_host_list("s2:2");
  ScriptedMembership job("s1:2", settings);
  enter_all(job);
  REQUIRE(job.started.size() == 2);
  job.ready(2, -1);
  CHECK(job.notices.empty());
  job.ready(3, -1);
  REQUIRE(job.notices.size() == 1);
  CHECK(job.notices[0].outdated == 0);
}

TEST_CASE("a job that is made smaller lets its last ranks go, and one that is made larger grows", "[unit]") {
  ScriptedMembership job("s1:2,s2:2", elastic(1, 4));
  enter_all(job);
  job.membership.resize(2, job.now);
  REQUIRE(job.notices.size() == 1);
  CHECK(job.notices[0].leaving == std::vector<int>{3, 2});
  job.ready(0, 1);
  job.ready(1, 1);
  CHECK(job.members() == std::vector<int>{0, 1});
  CHECK_THAT(job.formed.back().told, ContainsSubstring("rank 2 on s2 has left, rank 3 on s2 has left"));
  job.ended(2);
  job.ended(3);
  CHECK(job.started.empty());
  job.membership.resize(3, job.now);
  REQUIRE(job.started.size() == 1);
  CHECK(job.started[0].host == 1);
}

TEST_CASE("a host with fewer slots keeps its first local ranks", "[unit]") {
  ScriptedMembership job("s1:1,s2:3", elastic(1, 4));
  enter_all(job);
  job.membership.set_host(1, "s2", 1, job.now);
  CHECK(job.notices.back().leaving == std::vector<int>{3, 2});
  job.ready(0, 1);
  job.ready(1, 1);
  CHECK(job.members() == std::vector<int>{0, 1});
}

TEST_CASE("a lost host is used again after its time, or when the user adds it again", "[unit]") {
  ElasticSettings settings = elastic(1, 2);
  settings.cooldown = Cooldown{20s, 100s};
  ScriptedMembership job("s1:1,s2:1", settings);
  enter_all(job);
  job.membership.host_lost(1, "lost the agent on s2: gone", job.now);
  job.ready(0, 1);
  CHECK(job.started.empty());
  SECTION("after its time, and for twice the time when it cannot join") {
    job.pass(20s);
    REQUIRE(job.started.size() == 1);
    job.membership.host_not_joined(1, "no answer", job.now);
    CHECK_THAT(job.warnings.back(), ContainsSubstring("s2 cannot join: no answer; s2 is excluded for 40 s"));
    job.pass(39s);
    CHECK(job.started.size() == 1);
    job.pass(1s);
    CHECK(job.started.size() == 2);
  }
  SECTION("when the user adds it again") {
    job.membership.set_host(1, "s2", 1, job.now, /*forgiven=*/true);
    CHECK(job.started.size() == 1);
  }
}

TEST_CASE("a host that cannot join through no fault of its own is not excluded, and gets processes when it can",
          "[unit]") {
  ScriptedMembership job("s1:1", elastic(1, 2));
  enter_all(job);
  const std::string why = "the ranks on s1 are reached at 127.0.0.1 only";
  SECTION("it is known before") {
    job.obstacles[1] = why;
    job.membership.set_host(1, "s2", 1, job.now);
    CHECK(job.started.empty());
    job.membership.resize(3, job.now);
  }
  SECTION("it is found when it is tried") {
    job.membership.set_host(1, "s2", 1, job.now);
    REQUIRE(job.started.size() == 1);
    job.obstacles[1] = why;
    job.membership.host_not_joined(1, why, job.now);
    job.started.clear();
  }
  CHECK(job.warnings == std::vector<std::string>{"s2 cannot join: " + why});  // once
  CHECK(job.membership.is_ruled_out(1));
  CHECK(job.formed.empty());
  job.obstacles.clear();
  CHECK_FALSE(job.membership.is_ruled_out(1));
  job.membership.resize(2, job.now);
  REQUIRE(job.started.size() == 1);
  CHECK(job.started[0].host == 1);
}

TEST_CASE("the line about a generation names the hosts that are excluded, of many the first four", "[unit]") {
  ScriptedMembership job("s1:1,s2:1,s3:1,s4:1,s5:1,s6:1,s7:1", elastic(1, 7));
  enter_all(job);
  for (int host = 1; host < 7; ++host) job.membership.host_lost(host, fmt::format("lost s{}", host + 1), job.now);
  job.ready(0, 1);
  CHECK_THAT(job.formed.back().told,
             StartsWith("lost s2; lost s3; lost s4; lost s5; 2 other hosts were lost. The job goes on with 1 rank"));
  CHECK_THAT(job.formed.back().told, EndsWith("; no new process starts on s2, s3, s4, s5 and 2 other hosts."));
  job.membership.set_host(1, "s2", 1, job.now, /*forgiven=*/true);
  job.ready(7, -1);
  job.ready(0, 2);
  CHECK_THAT(job.formed.back().told, EndsWith("stood still for 0.00 s."));  // they are named once
}

TEST_CASE("by Horovod's rules a failed rank's host is excluded with its ranks, and the others wait for newcomers",
          "[unit]") {
  ElasticSettings settings = elastic(1, 100);
  settings.as_horovod = true;
  settings.rank_restarts = 0;
  settings.more_hosts = parse_host_list("s3:1");
  ScriptedMembership job("s1:2,s2:2", settings);
  job.membership.entered(0, job.now);
  enter_all(job);
  REQUIRE(job.started.size() == 1);
  CHECK(job.notices.back().outdated == 0);  // at the start of a newcomer
  job.killed(2);
  CHECK(job.told_to_end == std::vector<int>{3});
  job.ready(0, 1);
  job.ready(1, 1);
  CHECK(job.formed.empty());
  SECTION("that are ready in time") {
    job.ready(4, -1);
    CHECK(job.members() == std::vector<int>{0, 1, 4});
  }
  SECTION("for no longer than the time limit") {
    job.pass(600s);
    CHECK(job.members() == std::vector<int>{0, 1});
  }
}
