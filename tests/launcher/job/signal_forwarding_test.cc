#include "launcher/job/signal_forwarding.hpp"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "launcher/processes/ignored_signal.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

/// Runs `body` in a child, since signals and stops are a process's; its exit status.
template <class Body>
int in_child(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Raises `signals` one after another, each when the one before has been handled; what was forwarded.
std::vector<int> forwarded(const std::vector<int>& signals) {
  boost::asio::io_context context;
  std::vector<int> sent;
  SignalForwarding forwarding(context.get_executor(), {[&](int number) {
                                                         sent.push_back(number);
                                                         context.stop();
                                                       },
                                                       [](const auto&) {}, [] {}, [](auto) {}});
  forwarding.start();
  for (const int number : signals) {
    ::raise(number);
    context.restart();
    context.run();
  }
  return sent;
}

}  // namespace

TEST_CASE("signals for the ranks are sent on, Ctrl-Z as SIGSTOP", "[unit]") {
  CHECK(in_child([] {
          const std::vector<int> signals = {SIGUSR1, SIGUSR2, SIGQUIT, SIGWINCH, SIGCONT};
          return forwarded(signals) == signals ? 0 : 1;
        }) == 0);
  CHECK(in_child([] { return forwarded({SIGTSTP}) == std::vector<int>{SIGSTOP} ? 0 : 1; }) == 0);
}

TEST_CASE("a signal that was ignored from the start stays ignored", "[unit]") {
  CHECK(in_child([] {
          ::signal(SIGUSR1, SIG_IGN);
          boost::asio::io_context context;
          const SignalForwarding forwarding(context.get_executor(), {});
          return is_ignored(SIGUSR1) && !is_ignored(SIGUSR2) ? 0 : 1;
        }) == 0);
}

TEST_CASE("the ranks go on after a stop, also when SIGCONT was ignored from the start", "[multiproc]") {
  const auto action = GENERATE(SIG_DFL, SIG_IGN);
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    ::signal(SIGCONT, action);
    boost::asio::io_context context;
    std::vector<int> sent;
    const auto send = [&](int number) { sent.push_back(number); };
    SignalForwarding forwarding(context.get_executor(),
                                {send, [](const auto& done) { done(); }, [] {}, [&](auto) { context.stop(); }});
    forwarding.start();
    ::raise(SIGTSTP);
    context.run();
    context.restart();
    context.poll();
    ::_exit(sent == std::vector<int>{SIGSTOP, SIGCONT} ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(launcher, &status, WUNTRACED) == launcher);
  CHECK(WIFSTOPPED(status));
  ::kill(launcher, SIGCONT);
  ::waitpid(launcher, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("SIGCONT takes back a stop that has not happened yet", "[unit]") {
  CHECK(in_child([] {
          boost::asio::io_context context;
          std::vector<int> sent;
          std::function<void()> when_sent;
          bool stopped = false;
          SignalForwarding forwarding(context.get_executor(), {[&](int number) {
                                                                 sent.push_back(number);
                                                                 if (number == SIGCONT) context.stop();
                                                               },
                                                               [&](std::function<void()> done) {
                                                                 when_sent = std::move(done);
                                                                 ::raise(SIGCONT);
                                                               },
                                                               [&] { stopped = true; }, [](auto) {}});
          forwarding.start();
          ::raise(SIGTSTP);
          context.run();
          when_sent();
          return sent == std::vector<int>{SIGSTOP, SIGCONT} && !stopped ? 0 : 1;
        }) == 0);
}
