#include "launcher/elastic/membership.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/elastic/scripted_membership.hpp"

using namespace runjob;
using namespace std::chrono_literals;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

// When a host is excluded for the failures of its ranks, and when a job ends for them.

namespace {

/// Rank 0 on s1 and rank 1 on s2, whose processes fail again and again.
struct TwoHosts : ScriptedMembership {
  explicit TwoHosts(int rank_restarts, int max_ranks = 2)
      : ScriptedMembership("s1:1,s2:1", settings(rank_restarts, max_ranks)) {
    for (const int process : {0, 1}) membership.entered(process, now);
  }
  static ElasticSettings settings(int rank_restarts, int max_ranks) {
    ElasticSettings result = elastic(1, max_ranks);
    result.rank_restarts = rank_restarts;
    return result;
  }
  /// The process on s2 is lost when the job has made this commit, and the next one joins rank 0.
  void lose_and_replace(std::int64_t commit) {
    const std::size_t before = started.size();
    killed(on_s2);
    ready(0, commit);
    if (started.size() == before) return;
    on_s2 = started.back().process;
    ready(on_s2, -1);
    ready(0, commit);
  }

  int on_s2 = 1;
};

}  // namespace

TEST_CASE("a host is excluded when one more rank than --rank-restarts has failed in a row", "[unit]") {
  TwoHosts job(3);
  for (int failure = 1; failure <= 3; ++failure) {
    job.lose_and_replace(failure);
    CHECK(job.started.size() == static_cast<std::size_t>(failure));
    CHECK(job.members() == std::vector<int>{0, job.on_s2});
  }
  job.lose_and_replace(4);
  CHECK(job.started.size() == 3);
  CHECK(job.members() == std::vector<int>{0});
  CHECK_THAT(job.formed.back().cause, EndsWith("was killed by signal 9 (SIGKILL); s2 is excluded for ever"));
}

TEST_CASE("failures are forgotten once a replacement has lived through ten commits", "[unit]") {
  TwoHosts job(1);
  std::int64_t commit = 0;
  job.lose_and_replace(commit);
  SECTION("ten times ten commits") {
    for (int i = 0; i < 10; ++i) {
      job.lose_and_replace(commit += 10);
      CHECK(job.members() == std::vector<int>{0, job.on_s2});
    }
    CHECK(job.started.size() == 11);
  }
  SECTION("nine commits are too few") {
    job.lose_and_replace(commit += 9);
    CHECK(job.members() == std::vector<int>{0});
    CHECK_THAT(job.formed.back().cause, EndsWith("s2 is excluded for ever"));
  }
}

TEST_CASE("commits that others make before a successor has come forgive no failure", "[unit]") {
  TwoHosts job(1);
  job.killed(1);
  job.ready(0, 0);
  job.ready(2, -1);
  job.ready(0, 100);
  REQUIRE(job.members() == std::vector<int>{0, 2});
  job.killed(2);
  job.ready(0, 105);
  CHECK_THAT(job.formed.back().cause, EndsWith("s2 is excluded for ever"));
}

TEST_CASE("a member that goes on forgives only the failures before its start", "[unit]") {
  TwoHosts job(1, 3);
  job.membership.set_host(1, "s2", 2, job.now);  // process 2 starts there
  job.killed(1);                                 // and process 3 instead of this one
  job.ready(0, 0);
  for (const int process : {2, 3}) job.ready(process, -1);
  job.ready(0, 0);
  REQUIRE(job.members() == std::vector<int>{0, 2, 3});
  SECTION("process 3 forgives that of process 1") {
    for (const int process : {0, 2, 3}) job.ready(process, 10, "an error");
    job.killed(2);
    for (const int process : {0, 3}) job.ready(process, 11);
    CHECK(job.started.size() == 3);
  }
  SECTION("process 3 does not forgive that of process 2, of which process 4 is the successor") {
    job.killed(2);
    for (const int process : {0, 3}) job.ready(process, 1);
    REQUIRE(job.started.size() == 2);
    CHECK_THAT(job.formed.back().cause, EndsWith("s2 is excluded for ever"));
  }
}

TEST_CASE("a failure that may exclude its host starts no process there before the others have met", "[unit]") {
  TwoHosts job(1);
  job.lose_and_replace(0);
  job.killed(job.on_s2);
  CHECK(job.started.size() == 1);
  CHECK(job.notices.back().ended == job.membership.generation());  // the others learn of it at once
  job.ready(0, 10);
  CHECK(job.started.size() == 2);
}

TEST_CASE("a process that fails before it is a member counts at once", "[unit]") {
  TwoHosts job(1);
  job.killed(1);
  job.ready(0, 0);
  CHECK(job.started.size() == 1);
  job.killed(job.started.back().process);
  CHECK(job.started.size() == 1);
  CHECK_THAT(job.warnings.back(), EndsWith("was killed by signal 9 (SIGKILL); s2 is excluded for ever"));
}

TEST_CASE("a rank that does not come back in time counts as a failure on its host", "[unit]") {
  TwoHosts job(0);
  job.ready(0, 1);
  job.pass(30s);
  CHECK(job.told_to_end == std::vector<int>{1});
  CHECK_THAT(job.warnings.at(0), EndsWith("it is replaced; s2 is excluded for ever"));
  CHECK(job.started.empty());
}

TEST_CASE("hosts that are lost or removed, and growth, do not end a job without commits", "[unit]") {
  ElasticSettings settings = elastic(1, 3);
  settings.cooldown = Cooldown{1s, 1s};
  ScriptedMembership job("s1:1,s2:1", settings);
  for (const int process : {0, 1}) job.membership.entered(process, job.now);
  for (int i = 0; i < 6; ++i) {
    job.membership.host_lost(1, "lost the agent on s2: gone", job.now);
    job.ready(0, 0);
    job.pass(1s);
    job.ready(job.started.back().process, -1);
    job.ready(0, 0);
    job.membership.set_host(1, "s2", 0, job.now);
    job.ready(0, 0);
    job.ended(job.started.back().process);
    job.membership.set_host(1, "s2", 1, job.now);
    job.ready(job.started.back().process, -1);
    job.ready(0, 0);
    CHECK(job.members().size() == 2);
  }
  CHECK(job.finished.empty());
}

TEST_CASE("members that lose each other again and again meet later each time", "[unit]") {
  TwoHosts job(3);
  const auto lose_each_other = [&job](std::int64_t commit) {
    for (const int process : {0, 1}) job.ready(process, commit);
  };
  lose_each_other(1);
  REQUIRE(job.formed.size() == 1);
  SECTION("and the job ends when no time has helped") {
    for (std::size_t i = 1; i <= 4; ++i) {
      lose_each_other(1);
      job.pass(std::chrono::seconds(i) - 1ms);
      CHECK(job.formed.size() == i);
      CHECK(job.membership.next_deadline(job.now) == job.now + 1ms);
      job.pass(1ms);
      CHECK(job.formed.size() == i + 1);
    }
    lose_each_other(1);
    job.pass(5s);
    REQUIRE(job.finished.size() == 1);
    CHECK_THAT(job.finished[0], StartsWith("5 generations in a row"));
  }
  SECTION("but at once after a commit") {
    lose_each_other(2);
    CHECK(job.formed.size() == 2);
  }
  SECTION("and at once when a process has ended") {
    lose_each_other(1);
    job.killed(1);
    CHECK(job.members() == std::vector<int>{0});
    CHECK(job.membership.next_deadline(job.now) == Membership::TimePoint::max());
  }
}
