#include "launcher/agent/agent.hpp"

#include <cerrno>
#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/version.hpp"
#include "launcher/channel/fd_channel.hpp"
#include "rendezvous/client.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/frame_peer.hpp"

using namespace runjob;

namespace {

/// A real agent with its guard, in processes of their own, and the scripted launcher at the other end of its channel.
class RunningAgent {
 public:
  explicit RunningAgent(Agent::Starter starter = Agent::Starter::kLauncher) : RunningAgent(socket_pair(), starter) {}

  ~RunningAgent() {
    launcher.close();
    if (guard_ > 0) ::waitpid(guard_, nullptr, 0);
  }
  RunningAgent(const RunningAgent&) = delete;
  RunningAgent& operator=(const RunningAgent&) = delete;

  /// Launches rank 0 as a shell script, and returns its pid.
  pid_t launch(
      const std::string& script, const std::function<void(Launch&)>& change = [](Launch&) {}) {
    Launch message;
    message.command = {"/bin/sh", "-c", script};
    message.working_directory = "/";
    message.environment["PATH"] = "/usr/bin:/bin";
    message.output_window = 1 << 20;
    message.processes.emplace_back();
    message.topology = rendezvous::to_json(rendezvous::Topology{{0}, {"s1"}});
    change(message);
    launcher.send(ToAgent::kLaunch, -1, encode(message));
    return static_cast<pid_t>(decode<Started>(launcher.next(ToLauncher::kStarted).payload).pid);
  }

  void end(int signal, std::int64_t grace_ms, bool told = false) {
    launcher.send(ToAgent::kEnd, -1, encode(End{signal, grace_ms, told}));
  }

  /// The rank's standard output, up to `bytes` of it or its end.
  std::string output(std::size_t bytes = static_cast<std::size_t>(-1)) {
    std::string text;
    while (text.size() < bytes) {
      const auto frame = launcher.next(ToLauncher::kOutput);
      if (frame.header.stream != Stream::kStdout) continue;
      if (frame.payload.empty()) break;
      text += frame.payload;
    }
    return text;
  }

  Exited exited() { return decode<Exited>(launcher.next(ToLauncher::kExited).payload); }

  /// Waits until the agent has announced that it has finished, and has ended the channel.
  void finish() {
    launcher.next(ToLauncher::kFinished);
    launcher.wait_for_end();
  }

  /// Waits until the agent, its guard and every process of the job are gone.
  void wait_until_gone() { ::waitpid(std::exchange(guard_, -1), nullptr, 0); }

  LauncherPeer launcher;
  Hello hello;

 private:
  RunningAgent(std::pair<UniqueFd, UniqueFd> ends, Agent::Starter starter)
      : launcher(std::move(ends.first)), guard_(start(std::move(ends.second), starter)) {
    hello = decode<Hello>(launcher.next(ToLauncher::kHello).payload);
  }

  static pid_t start(UniqueFd socket, Agent::Starter starter) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    for (const int number : {SIGPIPE, SIGHUP, SIGINT}) ::signal(number, SIG_IGN);
    ::signal(SIGTERM, SIG_DFL);
    ::dup2(socket.get(), STDIN_FILENO);
    ::dup2(socket.get(), STDOUT_FILENO);
    ::close_range(3, ~0u, 0);
    const auto channel = [](boost::asio::any_io_executor executor) {
      return std::make_unique<FdChannel>(std::move(executor), UniqueFd(STDIN_FILENO), UniqueFd(STDOUT_FILENO));
    };
    try {
      Agent agent(start_guard(), Neighbours::kNone, starter, channel);
      agent.run();
    } catch (const std::exception&) {
      ::_exit(125);
    }
    ::_exit(0);
  }

  pid_t guard_;
};

bool is_gone(pid_t process) {
  return ::kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace

TEST_CASE("an agent starts a rank, forwards its output, reports its end and finishes", "[multiproc]") {
  RunningAgent agent;
  CHECK(agent.hello.version == kVersion);
  agent.launch("echo $RUNJOB_TEST; exit 3",
               [](Launch& launch) { launch.processes[0].environment["RUNJOB_TEST"] = "text"; });
  CHECK(agent.output() == "text\n");
  const Exited exited = agent.exited();
  CHECK(exited.wait_status == 3 << 8);
  CHECK_FALSE(exited.stopped_by_us);
  agent.finish();
}

TEST_CASE("a command that cannot be started is reported, and nothing is left to wait for", "[multiproc]") {
  RunningAgent agent;
  Launch message;
  message.command = {"/there/is/no/such/command"};
  message.working_directory = "/";
  message.processes.emplace_back();
  agent.launcher.send(ToAgent::kLaunch, -1, encode(message));
  const auto failure = decode<StartFailed>(agent.launcher.next(ToLauncher::kStartFailed).payload);
  CHECK(failure.step == StartFailed::Step::kExec);
  CHECK(failure.error_number == ENOENT);
  agent.finish();
}

TEST_CASE("an agent that is told to end before the launch finishes at once", "[multiproc]") {
  RunningAgent agent;
  agent.end(SIGTERM, 10'000);
  agent.finish();
}

TEST_CASE("ranks that are told to end get the signal, and SIGKILL after the grace period", "[multiproc]") {
  RunningAgent agent;
  SECTION("a rank that heeds the signal") {
    agent.launch("echo ready; exec sleep 1000");
    CHECK(agent.output(6) == "ready\n");
    agent.end(SIGTERM, 60'000);
    CHECK(agent.exited().wait_status == SIGTERM);
  }
  SECTION("a rank that ignores it") {
    agent.launch("trap '' TERM; echo ready; while :; do sleep 1000; done");
    CHECK(agent.output(6) == "ready\n");
    agent.end(SIGTERM, 50);
    const Exited exited = agent.exited();
    CHECK(exited.wait_status == SIGKILL);
    CHECK(exited.stopped_by_us);
  }
  SECTION("no grace period") {
    agent.launch("trap '' TERM; echo ready; while :; do sleep 1000; done");
    CHECK(agent.output(6) == "ready\n");
    agent.end(SIGINT, 0);
    CHECK(agent.exited().wait_status == SIGKILL);
  }
  agent.finish();
}

TEST_CASE("an agent of an elastic job finishes although all its ranks have ended before", "[multiproc]") {
  const std::int64_t grace_ms = GENERATE(0, 60'000);
  CAPTURE(grace_ms);
  RunningAgent agent;
  agent.launch("exit 0", [](Launch& launch) { launch.elastic_slots = 1; });
  CHECK(agent.exited().wait_status == 0);
  agent.end(SIGTERM, grace_ms);
  agent.finish();
}

TEST_CASE("signals reach the rank, and heartbeats are answered", "[multiproc]") {
  RunningAgent agent;
  agent.launch("trap 'echo signalled; exit 4' USR1; echo ready; while :; do sleep 0.01; done");
  CHECK(agent.output(6) == "ready\n");
  agent.launcher.send(ToAgent::kHeartbeat);
  agent.launcher.next(ToLauncher::kHeartbeat);
  agent.launcher.send(ToAgent::kPause);
  agent.launcher.send(ToAgent::kSignal, -1, encode(Signal{SIGUSR1}));
  CHECK(agent.output() == "signalled\n");
  CHECK(agent.exited().wait_status == 4 << 8);
}

TEST_CASE("processes that a rank leaves behind are ended before the agent finishes", "[multiproc]") {
  RunningAgent agent;
  agent.launch("setsid sleep 1000 > /dev/null 2>&1 & echo $!");
  const pid_t left = static_cast<pid_t>(std::stol(agent.output()));
  CHECK(agent.exited().wait_status == 0);
  agent.finish();
  agent.wait_until_gone();
  CHECK(is_gone(left));
}

TEST_CASE("a rank's output waits for credit", "[multiproc]") {
  RunningAgent agent;
  agent.launch("head -c 10000 /dev/zero", [](Launch& launch) { launch.output_window = 4096; });
  CHECK(agent.output(4096).size() == 4096);
  agent.launcher.send(ToAgent::kOutputCredit, 0, encode(Credit{1000}), Stream::kStdout);
  CHECK(agent.output(1000).size() == 1000);
  agent.launcher.send(ToAgent::kOutputCredit, 0, encode(Credit{1 << 20}), Stream::kStdout);
  CHECK(agent.output().size() == 10000 - 5096);
  agent.finish();
}

TEST_CASE("input reaches the rank that is to have it, and is credited", "[multiproc]") {
  RunningAgent agent;
  agent.launch("cat", [](Launch& launch) { launch.stdin_process = 0; });
  agent.launcher.send(ToAgent::kInput, 0, "typed");
  CHECK(decode<Credit>(agent.launcher.next(ToLauncher::kInputCredit).payload).bytes == 5);
  agent.launcher.send(ToAgent::kInput, 0, "");
  CHECK(agent.output() == "typed");
  CHECK(agent.exited().wait_status == 0);
}

TEST_CASE("joins are answered by the agent, other requests by the launcher", "[multiproc]") {
  RunningAgent agent;
  agent.launch("echo $RUNJOB_RENDEZVOUS; exec sleep 1000",
               [](Launch& launch) { launch.processes[0].place.hostname = "s1"; });
  std::string address = agent.output(1);
  while (address.back() != '\n') address += agent.output(1);
  address.pop_back();
  rendezvous::Client client(address, 0);
  const rendezvous::JoinReply place = client.join(std::chrono::seconds(30));
  CHECK(place.hostname == "s1");
  CHECK(agent.launcher.next(ToLauncher::kJoined).header.process == 0);

  std::optional<std::string> value;
  std::string lost;
  std::thread rank([&] {
    value = client.get("scope", "key");
    try {
      client.get("scope", "key");
    } catch (const std::exception& error) {
      lost = error.what();
    }
  });
  const auto request = decode<RelayedRequest>(agent.launcher.next(ToLauncher::kRequest).payload);
  agent.launcher.send(ToAgent::kReply, -1, encode(RelayedReply{request.id, {200, "", "value"}}));
  agent.launcher.next(ToLauncher::kRequest);
  agent.launcher.close();
  rank.join();
  CHECK_THAT(request.request.target, ContainsSubstring("/v1/kv/scope/key?"));
  CHECK(value == "value");
  CHECK_THAT(lost, ContainsSubstring("the launcher is gone"));
}

TEST_CASE("an agent that cannot go on says why, and ends its ranks", "[multiproc]") {
  RunningAgent agent;
  const pid_t rank = agent.launch("exec sleep 1000");
  const auto reason = [&] { return agent.launcher.next(ToLauncher::kFailed).payload; };
  SECTION("bytes that are no frame") {
    agent.launcher.send_bytes(std::string("\0\0\0\0\x63\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20));
    CHECK(reason() == "frame of unknown type 99");
  }
  SECTION("a frame of its own direction") {
    agent.launcher.send_bytes(std::string("\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20));
    CHECK(reason() == "frame of type 1, which only an agent sends");
  }
  SECTION("a second launch") {
    Launch again;
    again.command = {"true"};
    agent.launcher.send(ToAgent::kLaunch, -1, encode(again));
    CHECK(reason() == "a second launch");
  }
  SECTION("a message that is none") {
    agent.launcher.send(ToAgent::kEnd, -1, "garbage");
    CHECK_THAT(reason(), ContainsSubstring("a control message that cannot be read: "));
  }
  agent.launcher.wait_for_end();
  agent.wait_until_gone();
  CHECK(is_gone(rank));
}

TEST_CASE("an agent whose launcher is gone ends its ranks", "[multiproc]") {
  RunningAgent agent;
  const pid_t rank = agent.launch("echo ready; exec sleep 1000");
  CHECK(agent.output(6) == "ready\n");
  agent.launcher.close();
  agent.wait_until_gone();
  CHECK(is_gone(rank));
}

TEST_CASE("an agent that its launcher has started takes SIGTERM as the end of the channel", "[multiproc]") {
  RunningAgent agent;
  const pid_t rank = agent.launch("exec sleep 1000");
  ::kill(static_cast<pid_t>(agent.hello.pid), SIGTERM);
  agent.launcher.wait_for_end();
  agent.wait_until_gone();
  CHECK(is_gone(rank));
}

TEST_CASE("a batch system's SIGTERM is reported and not passed on to the ranks", "[multiproc]") {
  RunningAgent agent(Agent::Starter::kBatchSystem);
  agent.launch("trap 'echo signalled' TERM; echo ready; while :; do sleep 0.01; done",
               [](Launch& launch) { launch.grace_ms = 100; });
  CHECK(agent.output(6) == "ready\n");
  ::kill(static_cast<pid_t>(agent.hello.pid), SIGTERM);
  agent.launcher.next(ToLauncher::kToldToEnd);
  agent.end(SIGTERM, 10'000, /*told=*/true);  // the launcher's answer changes nothing
  const Exited exited = agent.exited();
  CHECK(exited.wait_status == SIGKILL);
  CHECK(exited.stopped_by_us);
}

TEST_CASE("a rank gets SIGTERM from the agent when that of the batch system does not come", "[multiproc]") {
  RunningAgent agent(Agent::Starter::kBatchSystem);
  agent.launch("trap 'echo signalled; exit 5' TERM; echo ready; while :; do sleep 0.01; done");
  CHECK(agent.output(6) == "ready\n");
  agent.end(SIGTERM, 200, /*told=*/true);
  CHECK(agent.output() == "signalled\n");
  CHECK(agent.exited().wait_status == 5 << 8);
}
