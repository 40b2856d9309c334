#include "launcher/supervision/outcome_report.hpp"

#include <cerrno>
#include <csignal>

#include <nlohmann/json.hpp>

#include "launcher/supervision/verdict.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/supervision/three_ranks.hpp"

using namespace runjob;

TEST_CASE("a command that cannot be run gives 127 or 126 and names host and command", "[unit]") {
  const auto status_and_text = [](StartFailed failure, const std::string& command) {
    Verdict verdict(two_hosts(), command);
    verdict.rank_not_started(2, failure);
    return std::pair(verdict.outcome().exit_status(), outcome_message(verdict.outcome(), no_lines));
  };
  using Step = StartFailed::Step;
  CHECK(status_and_text({Step::kExec, ENOENT, ""}, "trian") ==
        std::pair(127, std::string("s2: command not found: trian (searched PATH)")));
  CHECK(status_and_text({Step::kExec, ENOENT, ""}, "./trian") ==
        std::pair(127, std::string("s2: command not found: ./trian")));
  CHECK(status_and_text({Step::kExec, EACCES, ""}, "./data.txt") ==
        std::pair(126, std::string("s2: cannot execute ./data.txt: Permission denied")));
  CHECK(status_and_text({Step::kExec, ENOENT, ""}, "t1.py").second ==
        "s2: command not found: t1.py (searched PATH); did you mean: python t1.py?");
  CHECK(status_and_text({Step::kExec, EACCES, ""}, "./t1.py").second ==
        "s2: cannot execute ./t1.py: Permission denied; did you mean: python ./t1.py?");
  CHECK(status_and_text({Step::kExec, ENOENT, ""}, "./t1.py").second == "s2: command not found: ./t1.py");
  CHECK(status_and_text({Step::kWorkingDirectory, ENOENT, "/no/such"}, "x") ==
        std::pair(125, std::string("s2: cannot change to the working directory /no/such for rank 2: No such file or "
                                   "directory; choose another with --wdir")));
  CHECK(status_and_text({Step::kExec, ENOENT, ""}, "python x.py").second ==
        "s2: command not found: python x.py (searched PATH); if these are several words, leave out the quotes: runjob "
        "python x.py");
  CHECK(status_and_text({Step::kExec, ENOENT, ""}, "/usr/bin/python3 x.py").second ==
        "s2: command not found: /usr/bin/python3 x.py; if these are several words, leave out the quotes: runjob "
        "/usr/bin/python3 x.py");
  CHECK(status_and_text({Step::kExec, ENOENT, ""}, "FOO=/a/b.py").second ==
        "s2: command not found: FOO=/a/b.py; to set a variable of the ranks, write -x FOO=/a/b.py before the command");
  CHECK(status_and_text({Step::kExec, ENOENT, ""}, "FOO=1 python x.py").second ==
        "s2: command not found: FOO=1 python x.py (searched PATH); if these are several words, leave out the quotes: "
        "runjob -x FOO=1 python x.py");
  CHECK(status_and_text({Step::kExec, ENOENT, ""}, "/a=b").second == "s2: command not found: /a=b");
  CHECK(status_and_text({Step::kPlacement, 0, "2 ranks cannot have a core each"}, "x") ==
        std::pair(125, std::string("s2: 2 ranks cannot have a core each")));
  CHECK(status_and_text({Step::kAffinity, EINVAL, ""}, "x").second ==
        "s2: cannot bind rank 2 to its CPUs: Invalid argument");
  CHECK(status_and_text({Step::kFork, EAGAIN, ""}, "x").second ==
        "s2: cannot start rank 2: Resource temporarily unavailable");
}

TEST_CASE("what ends a job after a failure that did not is told as well", "[unit]") {
  Verdict verdict(two_hosts(), "train", true);
  for (int rank = 0; rank < 3; ++rank) verdict.rank_started(rank, 100 + rank);
  verdict.rank_exited(0, with_status(7));
  verdict.host_lost(1, "it closed the connection");
  CHECK(verdict.ends_job());
  verdict.rank_exited(1, with_signal(SIGTERM));
  CHECK(verdict.outcome().exit_status() == 7);
  CHECK(outcome_message(verdict.outcome(), no_lines) ==
        "rank 0 on s1 (pid 100) exited with status 7; stopped 1 other rank\n"
        "  then lost the agent on s2: it closed the connection");
}

TEST_CASE("a host names what it waits for, and how to end that", "[unit]") {
  Remaining remaining{{{3, 70, "python"}, {-1, 71, "a\nb"}}, 7950};
  CHECK(remaining_message(remaining, "s1", true) ==
        "s1: waiting for rank 3 (pid 70, python), pid 71 (a\\nb) up to 7.95 s; Ctrl-C again kills");
  CHECK_THAT(remaining_message(remaining, "s1", false), ContainsSubstring("Ctrl-C twice kills"));
  remaining.processes.assign(10, {-1, 5, "x"});
  CHECK_THAT(remaining_message(remaining, "s1", true), ContainsSubstring("pid 5 (x) and 2 more up to"));
}

TEST_CASE("the status file tells each rank's end", "[unit]") {
  Verdict verdict = started();
  verdict.rank_exited(1, with_status(3));
  Exited stopped = with_signal(SIGTERM);
  stopped.stopped_by_us = true;
  verdict.rank_exited(0, stopped);
  verdict.rank_exited(2, with_status(0));
  const auto document = nlohmann::json::parse(
      outcome_json(verdict.outcome(), JobFacts{"j1"}, [](int) { return std::vector<std::string>{"\xff bytes"}; }));
  CHECK(document["job_id"] == "j1");
  CHECK(document["exit_status"] == 3);
  CHECK(document["first_failed_rank"] == 1);
  const auto& ranks = document["ranks"];
  REQUIRE(ranks.size() == 3);
  CHECK(ranks[0]["outcome"] == "stopped");
  CHECK(ranks[0]["signal"] == SIGTERM);
  CHECK(ranks[0]["status"].is_null());
  CHECK(ranks[1]["outcome"] == "failed");
  CHECK(ranks[1]["status"] == 3);
  CHECK(ranks[1]["pid"] == 101);
  CHECK(ranks[1]["host"] == "s1");
  CHECK(ranks[1]["last_stderr_lines"].size() == 1);
  CHECK(ranks[2]["outcome"] == "ok");
  CHECK(ranks[2]["out_of_memory"] == false);
}
