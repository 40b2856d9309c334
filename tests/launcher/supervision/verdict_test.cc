#include "launcher/supervision/verdict.hpp"

#include <cerrno>
#include <csignal>

#include <nlohmann/json.hpp>

#include "hostfile/parse_hosts.hpp"
#include "launcher/supervision/outcome_report.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/supervision/three_ranks.hpp"

using namespace runjob;

TEST_CASE("a job whose ranks all exit 0 is fine and says nothing", "[unit]") {
  Verdict verdict = started();
  for (int rank = 0; rank < 3; ++rank) verdict.rank_exited(rank, with_status(0));
  CHECK(verdict.cause() == Verdict::Cause::kNone);
  CHECK(verdict.outcome().exit_status() == 0);
  CHECK(outcome_message(verdict.outcome(), no_lines).empty());
}

TEST_CASE("the rank that failed first decides, those that we stopped do not", "[unit]") {
  Verdict verdict = started();
  verdict.rank_exited(1, with_status(3));
  CHECK(verdict.cause() == Verdict::Cause::kRankFailed);
  Exited stopped = with_signal(SIGTERM);
  stopped.stopped_by_us = true;
  verdict.rank_exited(0, stopped);
  verdict.rank_exited(2, with_status(9));
  CHECK(verdict.outcome().exit_status() == 3);
  CHECK(outcome_message(verdict.outcome(),
                        [](int rank) { return std::vector<std::string>{"line of " + std::to_string(rank)}; }) ==
        "rank 1 on s1 (pid 101) exited with status 3; stopped 2 other ranks\n  the last lines of its "
        "stderr:\n    line of 1");
}

TEST_CASE("a rank killed by a signal gives 128 plus its number", "[unit]") {
  Verdict verdict = started();
  Exited exited = with_signal(SIGKILL);
  exited.out_of_memory = true;
  verdict.rank_exited(2, exited);
  CHECK(verdict.outcome().exit_status() == 137);
  CHECK(outcome_message(verdict.outcome(), no_lines) ==
        "rank 2 on s2 (pid 102) was killed by signal 9 (SIGKILL), probably by the kernel's out-of-memory "
        "killer");
}

TEST_CASE("Ctrl-C, a lost host, a late rank, a closed output and hosts apart each have their status", "[unit]") {
  Verdict interrupted = started();
  interrupted.interrupted(SIGINT);
  interrupted.rank_exited(0, with_status(1));
  CHECK(interrupted.outcome().exit_status() == 130);
  CHECK(outcome_message(interrupted.outcome(), no_lines).empty());

  Verdict lost = started();
  lost.host_lost(1, "it closed the connection");
  CHECK(lost.outcome().exit_status() == 125);
  CHECK(outcome_message(lost.outcome(), no_lines) == "lost the agent on s2: it closed the connection");

  Verdict apart(two_hosts(), "train");
  apart.no_network(Status(Errc::kConnect, "s1 cannot reach s2: tried 10.0.0.2 (Connection timed out)"));
  CHECK(apart.ends_job());
  CHECK(apart.outcome().exit_status() == 125);
  CHECK(outcome_message(apart.outcome(), no_lines) == "s1 cannot reach s2: tried 10.0.0.2 (Connection timed out)");
  CHECK_THAT(outcome_json(apart.outcome(), JobFacts{"job7"}, no_lines), ContainsSubstring("\"cause\": \"no network\""));

  Verdict excluded(two_hosts(), "train");
  excluded.no_network(Status(Errc::kUsage, "s1 has no address that --network-interface eth7 allows"));
  CHECK(excluded.outcome().exit_status() == 2);

  Verdict late = started();
  late.start_timeout("rank 1 on s1: has not called init()");
  CHECK(late.outcome().exit_status() == 125);
  CHECK(outcome_message(late.outcome(), no_lines) == "rank 1 on s1: has not called init()");

  Verdict closed = started();
  closed.output_failed(EPIPE);
  closed.interrupted(SIGINT);
  CHECK(closed.outcome().exit_status() == 141);
  CHECK(outcome_message(closed.outcome(), no_lines).empty());

  Verdict stopped = started();
  stopped.host_lost(1, "runjob itself stood still for 9 s", Verdict::Cause::kStoodStill);
  CHECK(stopped.outcome().exit_status() == 125);
  CHECK(outcome_message(stopped.outcome(), no_lines) == "runjob itself stood still for 9 s");

  Verdict full = started();
  full.output_failed(ENOSPC);
  CHECK(full.outcome().exit_status() == 125);
  CHECK(outcome_message(full.outcome(), no_lines) == "cannot write to standard output: No space left on device");
}

TEST_CASE("a rank that only lost another one is not blamed for ending first", "[unit]") {
  Verdict verdict = started();
  verdict.rank_failing(0, true, "LookupError: no data");
  verdict.rank_failing(1, false, "rank 0 on s1 called shutdown()");
  verdict.rank_failing(2, false, "rank 0 on s1 called shutdown()");
  verdict.rank_exited(1, with_status(1));
  CHECK(verdict.cause() == Verdict::Cause::kNone);
  CHECK(verdict.unsettled());
  SECTION("the one that failed ends with its own status") {
    verdict.rank_exited(0, with_status(9));
    CHECK(verdict.outcome().exit_status() == 9);
    CHECK(outcome_message(verdict.outcome(), no_lines) ==
          "rank 0 on s1 (pid 100) exited with status 9: LookupError: no data\n"
          "  rank 1 exited with status 1 because another rank had left");
  }
  SECTION("or is named when it takes too long, and stopped") {
    verdict.settle();
    CHECK(verdict.ends_job());
    Exited stopped = with_signal(SIGTERM);
    stopped.stopped_by_us = true;
    verdict.rank_exited(0, stopped);
    verdict.rank_exited(2, stopped);
    CHECK(verdict.outcome().exit_status() == 1);
    CHECK(outcome_message(verdict.outcome(), no_lines) ==
          "rank 0 on s1 (pid 100) failed: LookupError: no data; stopped 1 other rank\n"
          "  rank 1 exited with status 1 because another rank had left");
  }
  const auto document = nlohmann::json::parse(outcome_json(verdict.outcome(), JobFacts{"j1"}, no_lines));
  CHECK(document["first_failed_rank"] == 0);
  CHECK(document["ranks"][0]["outcome"] == "failed");
  CHECK(document["ranks"][1]["outcome"] == "victim");
}

TEST_CASE("victims wait for a rank that says nothing, as long as one may come", "[unit]") {
  Verdict verdict = started();
  verdict.rank_failing(1, false, "rank 0 is gone");
  verdict.rank_exited(1, with_status(1));
  CHECK(verdict.unsettled());
  SECTION("it comes") {
    verdict.rank_exited(2, with_signal(SIGSEGV));
    CHECK(verdict.outcome().exit_status() == 128 + SIGSEGV);
  }
  SECTION("all others end well: the victim was the first to fail") {
    verdict.rank_exited(0, with_status(0));
    CHECK(verdict.unsettled());
    verdict.rank_exited(2, with_status(0));
    CHECK_FALSE(verdict.unsettled());
    CHECK(verdict.outcome().exit_status() == 1);
    CHECK(outcome_message(verdict.outcome(), no_lines) ==
          "rank 0 is gone\n  ranks 0, 2 ended normally; rank 1 on s1 (pid 101) exited with status 1 because of that");
  }
  SECTION("all others are victims too") {
    verdict.rank_failing(0, false, "rank 2 is gone");
    verdict.rank_failing(2, false, "rank 0 is gone");
    verdict.settle();
    CHECK(verdict.outcome().exit_status() == 1);
    CHECK(outcome_message(verdict.outcome(), no_lines) ==
          "rank 1 on s1 (pid 101) exited with status 1: rank 0 is gone");
  }
}

TEST_CASE("the rank that is waited for too long is named, not those that have waited", "[unit]") {
  Verdict verdict = started();
  verdict.rank_late(7, "no such rank");
  verdict.rank_late(1, "allreduce 'x' has waited 3 s for rank 1 on s1");
  verdict.rank_late(2, "a second report");
  CHECK(verdict.cause() == Verdict::Cause::kNone);
  verdict.rank_failing(0, true, "WaitTimeoutError: allreduce 'x' has waited 3 s for rank 1 on s1");
  Exited stopped = with_signal(SIGTERM);
  stopped.stopped_by_us = true;
  SECTION("it is ended with the others") {
    verdict.rank_exited(0, with_status(1));
    CHECK(verdict.ends_job());
    verdict.rank_exited(1, stopped);
    verdict.rank_exited(2, stopped);
    CHECK(verdict.outcome().exit_status() == 1);
    CHECK(outcome_message(verdict.outcome(), no_lines) ==
          "rank 1 on s1 (pid 101) stalled: allreduce 'x' has waited 3 s for rank 1 on s1; stopped 1 other rank\n"
          "  rank 0 exited with status 1 because an operation was not completed in time");
    const auto document = nlohmann::json::parse(outcome_json(verdict.outcome(), JobFacts{"j1"}, no_lines));
    CHECK(document["first_failed_rank"] == 1);
    CHECK(document["failed_ranks"] == nlohmann::json({1}));
    CHECK(document["ranks"][0]["outcome"] == "victim");
  }
  SECTION("it fails by itself") {
    verdict.rank_exited(1, with_status(5));
    CHECK(verdict.outcome().exit_status() == 5);
  }
  SECTION("the ranks begin anew") {
    verdict.rank_joined(1);
    verdict.rank_exited(0, with_status(6));
    CHECK(verdict.outcome().exit_status() == 6);
  }
}

TEST_CASE("of ranks that wait for each other none is blamed, in whatever order they end", "[unit]") {
  Verdict verdict = started();
  const std::string reason = "rank 0 on s1 waits in 'x' and rank 1 on s1 in 'y'";
  verdict.mutual_wait(reason);
  verdict.mutual_wait("a second report");
  const std::vector<int> order = GENERATE(std::vector{0, 1, 2}, std::vector{2, 1, 0}, std::vector{1, 0, 2});
  for (const int rank : order) {
    CHECK(verdict.cause() == Verdict::Cause::kNone);
    verdict.rank_failing(rank, true, "WaitTimeoutError: " + reason);
    verdict.rank_exited(rank, with_status(3 + rank));
  }
  CHECK(verdict.cause() == Verdict::Cause::kMutualWait);
  CHECK(verdict.ends_job());
  CHECK(verdict.outcome().exit_status() == 3);
  CHECK(outcome_message(verdict.outcome(), no_lines) ==
        reason +
            "\n  rank 0 exited with status 3 because an operation was not completed in time"
            "\n  rank 1 exited with status 4 because an operation was not completed in time"
            "\n  rank 2 exited with status 5 because an operation was not completed in time");
  const auto document = nlohmann::json::parse(outcome_json(verdict.outcome(), JobFacts{"j1"}, no_lines));
  CHECK(document["cause"] == "mutual wait");
  CHECK(document["first_failed_rank"].is_null());
  CHECK(document["failed_ranks"].empty());
  for (int rank = 0; rank < 3; ++rank) CHECK(document["ranks"][rank]["outcome"] == "victim");
}

TEST_CASE("a rank that waits for another and needs long to end is a victim too", "[unit]") {
  Verdict verdict = started();
  verdict.mutual_wait("rank 0 on s1 waits in 'x' and rank 1 on s1 in 'y'");
  verdict.rank_exited(1, with_status(1));
  CHECK(verdict.unsettled());
  SECTION("it is stopped") {
    verdict.settle();
    CHECK(verdict.ends_job());
    Exited stopped = with_signal(SIGTERM);
    stopped.stopped_by_us = true;
    verdict.rank_exited(0, stopped);
    verdict.rank_exited(2, stopped);
    CHECK(verdict.outcome().exit_status() == 1);
    const auto document = nlohmann::json::parse(outcome_json(verdict.outcome(), JobFacts{"j1"}, no_lines));
    for (int rank = 0; rank < 3; ++rank) CHECK(document["ranks"][rank]["outcome"] == "victim");
  }
  SECTION("it goes on, and ends well") {
    verdict.rank_exited(0, with_status(0));
    verdict.rank_exited(2, with_status(0));
    CHECK(verdict.outcome().exit_status() == 1);
    const auto document = nlohmann::json::parse(outcome_json(verdict.outcome(), JobFacts{"j1"}, no_lines));
    CHECK(document["ranks"][0]["outcome"] == "ok");
  }
  SECTION("the ranks begin anew") {
    Verdict again = started();
    again.mutual_wait("rank 0 on s1 waits in 'x' and rank 1 on s1 in 'y'");
    again.rank_joined(1);
    again.rank_exited(0, with_status(6));
    CHECK(again.outcome().exit_status() == 6);
    CHECK(again.cause() == Verdict::Cause::kRankFailed);
  }
}

TEST_CASE("the first rank that says it fails is named, unless it had lost another one before", "[unit]") {
  Verdict verdict = started();
  verdict.rank_failing(2, false, "rank 1 is gone");
  verdict.rank_failing(2, true, "RuntimeError: wrapped");
  verdict.rank_failing(1, true, "ValueError: x");
  verdict.rank_failing(0, true, "ValueError: y");
  verdict.rank_exited(0, with_status(3));
  CHECK(verdict.unsettled());
  verdict.rank_exited(1, with_status(4));
  CHECK(verdict.outcome().exit_status() == 4);
}

TEST_CASE("a rank that begins anew has not failed", "[unit]") {
  Verdict verdict = started();
  verdict.rank_failing(0, true, "ValueError: x");
  verdict.rank_failing(1, false, "rank 0 is gone");
  CHECK(verdict.unsettled());
  verdict.rank_joined(0);
  verdict.rank_joined(1);
  CHECK_FALSE(verdict.unsettled());
  verdict.rank_exited(1, with_status(6));
  CHECK(verdict.outcome().exit_status() == 6);
}

TEST_CASE("a job that outlives its time limit gives 124", "[unit]") {
  Verdict verdict = started();
  verdict.rank_exited(1, with_status(0));
  verdict.time_limit_reached(std::chrono::milliseconds(1500));
  CHECK(verdict.ends_job());
  verdict.rank_exited(0, with_signal(SIGTERM));
  verdict.rank_exited(2, with_signal(SIGTERM));
  CHECK(verdict.outcome().exit_status() == 124);
  CHECK(outcome_message(verdict.outcome(), no_lines) ==
        "the job did not end within the 1.5 s of --timeout; stopped 2 ranks");
}

TEST_CASE("with --continue-on-failure a failed rank ends nothing, and all that failed are named", "[unit]") {
  Verdict verdict(two_hosts(), "train", true);
  for (int rank = 0; rank < 3; ++rank) verdict.rank_started(rank, 100 + rank);
  verdict.rank_exited(2, with_status(7));
  CHECK(verdict.cause() == Verdict::Cause::kRankFailed);
  CHECK_FALSE(verdict.ends_job());
  verdict.rank_exited(0, with_status(1));
  verdict.rank_exited(1, with_status(1));
  CHECK_FALSE(verdict.ends_job());
  CHECK(verdict.outcome().exit_status() == 7);
  CHECK(outcome_message(verdict.outcome(),
                        [](int rank) { return std::vector<std::string>{"line of " + std::to_string(rank)}; }) ==
        "rank 2 on s2 (pid 102) exited with status 7\n  the last lines of its stderr:\n    line of 2\n"
        "  ranks 0, 1 exited with status 1");
  const auto document = nlohmann::json::parse(outcome_json(verdict.outcome(), JobFacts{"j1"}, no_lines));
  CHECK(document["failed_ranks"] == nlohmann::json({2, 0, 1}));
  CHECK(document["cause"] == "rank failed");
}

TEST_CASE("a network that is cut between two hosts is blamed, and neither rank", "[unit]") {
  Verdict verdict(allocate(parse_host_list("s1:2,s2"), std::nullopt), "train");
  for (int rank = 0; rank < 3; ++rank) verdict.rank_started(rank, 100 + rank);
  verdict.hosts_reached_over({"ib0", "ib0"});
  verdict.rank_failing(0, false, "rank 2 at 10.0.0.2: Connection timed out", 2);
  CHECK(verdict.unsettled());
  SECTION("all ranks end because they have lost others") {
    verdict.rank_failing(1, false, "rank 2 is gone");
    verdict.rank_exited(0, with_status(1));
    verdict.rank_exited(1, with_status(1));
    CHECK(verdict.cause() == Verdict::Cause::kNone);
    verdict.rank_failing(2, false, "rank 0 is gone", 0);
    verdict.rank_exited(2, with_status(1));
  }
  SECTION("the lost rank runs on") {
    verdict.rank_exited(0, with_status(1));
    CHECK(verdict.cause() == Verdict::Cause::kNone);
    verdict.settle();
  }
  CHECK(verdict.outcome().exit_status() == 125);
  CHECK(verdict.cause() == Verdict::Cause::kNetworkCut);
  CHECK(outcome_message(verdict.outcome(), no_lines) ==
        "s1 and s2 do not reach each other over ib0: rank 2 at 10.0.0.2: Connection timed out");
}

TEST_CASE("a lost connection that a rank reports again and again is kept once", "[unit]") {
  Verdict verdict(allocate(parse_host_list("s1,s2,s3"), std::nullopt), "train");
  for (int rank = 0; rank < 3; ++rank) verdict.rank_started(rank, 100 + rank);
  for (int i = 0; i < 1000; ++i) {
    for (const int lost : {2, 1, 0, 3, -1}) verdict.rank_failing(0, false, "gone", lost);
  }
  CHECK(verdict.outcome().lost_connections == std::vector<std::pair<int, int>>{{0, 2}, {0, 1}});
}

TEST_CASE("a rank that was killed, or whose host is lost, is named although others lost their connection to it",
          "[unit]") {
  Verdict verdict(allocate(parse_host_list("s1,s2"), std::nullopt), "train");
  for (int rank = 0; rank < 2; ++rank) verdict.rank_started(rank, 100 + rank);
  verdict.rank_failing(0, false, "rank 1 at 10.0.0.2: Connection reset by peer", 1);
  SECTION("killed") {
    verdict.rank_exited(1, with_signal(SIGKILL));
    CHECK(verdict.outcome().exit_status() == 137);
  }
  SECTION("its host is lost") {
    verdict.host_lost(1, "it has sent nothing for 5 s");
    CHECK(outcome_message(verdict.outcome(), no_lines) == "lost the agent on s2: it has sent nothing for 5 s");
  }
  SECTION("it ended well, and so nothing is decided") {
    verdict.rank_exited(1, with_status(0));
    verdict.settle();
    CHECK(verdict.cause() == Verdict::Cause::kNone);
  }
}

TEST_CASE("a connection between two ranks of one host is no network", "[unit]") {
  Verdict verdict = started();
  verdict.rank_failing(0, false, "rank 1 is gone", 1);
  CHECK_FALSE(verdict.unsettled());
}
