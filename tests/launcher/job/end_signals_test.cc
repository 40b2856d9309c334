#include "launcher/job/end_signals.hpp"

#include <csignal>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "tests/catch.hpp"

using namespace runjob;

namespace {

/// Raises `signals` one after another in a child, each when the one before has been handled; true if the calls are
/// these.
bool calls_are(const std::string& expected, const std::vector<int>& signals, bool with_nohup = false) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (with_nohup) ::signal(SIGHUP, SIG_IGN);
    boost::asio::io_context context;
    std::string calls;
    EndSignals end_signals(context.get_executor(), [&](int number, bool again) {
      calls += fmt::format("{}{} ", number, again ? " again" : "");
      context.stop();
    });
    end_signals.start();
    for (const int number : signals) {
      ::raise(number);
      if (with_nohup && number == SIGHUP) continue;
      context.restart();
      context.run();
    }
    ::_exit(calls == expected ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0;
}

}  // namespace

TEST_CASE("the signals that end a job are announced, and every SIGINT from the second one on as again", "[unit]") {
  CHECK(calls_are("2 15 1 ", {SIGINT, SIGTERM, SIGHUP}));
  CHECK(calls_are("2 2 again 2 again ", {SIGINT, SIGINT, SIGINT}));
  CHECK(calls_are("15 15 ", {SIGTERM, SIGTERM}));
}

TEST_CASE("SIGHUP that was ignored from the start does not end the job", "[unit]") {
  CHECK(calls_are("2 15 ", {SIGHUP, SIGINT, SIGHUP, SIGTERM}, /*with_nohup=*/true));
}
