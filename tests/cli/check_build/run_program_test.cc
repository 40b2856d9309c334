#include "cli/check_build/run_program.hpp"

#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

TEST_CASE("run_program returns what a program wrote and how it ended", "[unit][multiproc]") {
  const ProgramResult good = run_program({"sh", "-c", "echo out; echo err >&2; cat"}, {}, 30s);
  CHECK(good.output == "out\n");
  CHECK(good.problem.empty());
  CHECK(run_program({"sh", "-c", "echo why; exit 3"}, {}, 30s).problem == "exited with status 3");
  CHECK(run_program({"sh", "-c", "echo why; exit 3"}, {}, 30s).output == "why\n");
  CHECK_THAT(run_program({"sh", "-c", "kill -SEGV $$"}, {}, 30s).problem,
             ContainsSubstring("was killed by signal 11 ("));
  CHECK(run_program({"/nonexistent/program"}, {}, 30s).problem == "could not be started: No such file or directory");
}

TEST_CASE("run_program ends what does not end", "[unit][multiproc]") {
  CHECK(run_program({"sh", "-c", "echo first; sleep 1000"}, {}, 100ms).problem == "did not end within 0.1 s");
  // with its output closed, and with a child that keeps the output open
  CHECK(run_program({"sh", "-c", "exec >&-; sleep 1000"}, {}, 100ms).problem == "did not end within 0.1 s");
  std::string output;
  for (const auto limit : {100ms, 1000ms, 10000ms}) {  // on a busy machine the shell may need longer
    output = run_program({"sh", "-c", "sleep 1000 & echo parent"}, {}, limit).output;
    if (!output.empty()) break;
  }
  CHECK(output == "parent\n");
}

TEST_CASE("run_program keeps at most 1 MiB of output", "[unit][multiproc]") {
  const ProgramResult result = run_program({"sh", "-c", "head -c 3000000 /dev/zero"}, {}, 30s);
  CHECK(result.output.size() == 1 << 20);
  CHECK(result.problem.empty());
}

TEST_CASE("run_program gives the program the environment it is told, and nothing else", "[unit][multiproc]") {
  CHECK(run_program({"/usr/bin/env"}, {{"A", "1"}, {"B", "x=y"}}, 30s).output == "A=1\nB=x=y\n");
}
