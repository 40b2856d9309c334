#include "launcher/slurm/srun_program.hpp"

#include <filesystem>
#include <signal.h>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

const Environment kEnvironment = {{"PATH", "/usr/bin:/bin"}};

/// All that a shell script says, with its end, as the program's events tell it.
std::vector<std::string> events_of(const std::string& script, const std::string& input) {
  boost::asio::io_context context(1);
  std::vector<std::string> events;
  const SrunProgram program(context.get_executor(), {"sh", "-c", script}, kEnvironment, input,
                            {[&](const std::string& line) { events.push_back(line); },
                             [&](const std::string& how) { events.push_back("end: " + how); }});
  context.run();
  return events;
}

}  // namespace

TEST_CASE("a program reads its input, and its lines and its end are told in order", "[multiproc]") {
  CHECK(events_of("read line; echo \"got $line\"; echo error >&2; exit 3", "the call\n") ==
        std::vector<std::string>{"got the call", "error", "end: exited with status 3"});
  CHECK(events_of("kill -9 $$", "") == std::vector<std::string>{"end: was killed by signal 9"});
}

TEST_CASE("a program that is not there is named with a remedy", "[multiproc]") {
  boost::asio::io_context context(1);
  CHECK_THROWS_WITH(
      SrunProgram(context.get_executor(), {"no-such-srun"}, kEnvironment, "", {}),
      "cannot start no-such-srun: No such file or directory; are SLURM's commands installed here? If not, "
      "name the hosts with -H");
}

TEST_CASE("a program that still runs at the end is killed", "[multiproc]") {
  boost::asio::io_context context(1);
  pid_t pid = 0;
  {
    const SrunProgram program(context.get_executor(), {"sh", "-c", "echo $$; exec sleep 600"}, kEnvironment, "",
                              {[&](const std::string& line) {
                                 pid = std::stoi(line);
                                 context.stop();
                               },
                               {}});
    context.run();
    REQUIRE(::kill(pid, 0) == 0);
  }
  CHECK(::kill(pid, 0) == -1);
}

TEST_CASE("finish waits for a program that ends by itself", "[multiproc]") {
  const std::string path = std::filesystem::temp_directory_path() / ("runjob-test-" + std::to_string(::getpid()));
  boost::asio::io_context context(1);
  SrunProgram program(context.get_executor(), {"sh", "-c", "read line; echo done > \"$line\""}, kEnvironment,
                      path + "\n", {});
  program.finish();
  CHECK(std::filesystem::remove(path));
}
