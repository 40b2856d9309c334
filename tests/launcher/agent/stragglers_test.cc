#include "launcher/agent/stragglers.hpp"

#include <csignal>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "base/unique_handle.hpp"
#include "launcher/processes/process_tree.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

/// A child in a session of its own that writes a byte for each SIGTERM, and does not end on it.
class Daemon {
 public:
  Daemon() {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    reader_.reset(ends[0]);
    const UniqueFd writer(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) run(writer.get());
    CHECK(next() == 'r');
  }
  ~Daemon() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  pid_t pid() const { return pid_; }
  /// The next byte: 'r' when it is ready, 't' for a SIGTERM, 'a' for each SIGUSR1.
  char next() const {
    char byte = 0;
    CHECK(::read(reader_.get(), &byte, 1) == 1);
    return byte;
  }

 private:
  [[noreturn]] static void run(int output) {
    sigset_t awaited;
    ::sigemptyset(&awaited);
    for (const int number : {SIGTERM, SIGUSR1}) ::sigaddset(&awaited, number);
    ::sigprocmask(SIG_BLOCK, &awaited, nullptr);
    ::setsid();
    ::prctl(PR_SET_NAME, "a daemon");
    for (char byte = 'r';;) {
      static_cast<void>(!::write(output, &byte, 1));
      int number = 0;
      ::sigwait(&awaited, &number);
      byte = number == SIGTERM ? 't' : 'a';
    }
  }

  pid_t pid_ = -1;
  UniqueFd reader_;
};

/// Stragglers of an agent that has started no rank: every process below this one is one.
struct Watched {
  std::optional<Remaining> reported;
  boost::asio::io_context context;
  FrameWriter<ToLauncher> frames{context.get_executor()};
  RankProcesses ranks{context.get_executor(), frames, [] {}};
  Stragglers stragglers{context.get_executor(), ranks, [this](const Remaining& remaining) { reported = remaining; }};
};

}  // namespace

TEST_CASE("a process outside of the ranks' groups gets SIGTERM, and only once", "[multiproc]") {
  const Daemon daemon;
  Watched agent;
  agent.stragglers.terminate();
  CHECK(daemon.next() == 't');
  agent.stragglers.terminate();
  ::kill(daemon.pid(), SIGUSR1);
  CHECK(daemon.next() == 'a');
}

TEST_CASE("processes that remain are reported with the time that is left", "[multiproc]") {
  const Daemon daemon;
  Watched agent;
  agent.stragglers.watch(10s);
  agent.context.run();
  REQUIRE(agent.reported);
  REQUIRE(agent.reported->processes.size() == 1);
  CHECK(agent.reported->processes[0].pid == daemon.pid());
  CHECK(agent.reported->processes[0].number == -1);
  CHECK(agent.reported->processes[0].name == "a daemon");
  CHECK(agent.reported->left_ms == (10s - Stragglers::kPatience) / 1ms);
}

TEST_CASE("nothing is reported when nothing remains, or when it is killed soon", "[multiproc]") {
  Watched agent;
  agent.stragglers.watch(10s);
  agent.context.run();
  CHECK_FALSE(agent.reported);
  const Daemon daemon;
  agent.context.restart();
  agent.stragglers.watch(Stragglers::kPatience);
  agent.context.run();
  CHECK_FALSE(agent.reported);
}
