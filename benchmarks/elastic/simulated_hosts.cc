/// elastic_hosts HOSTS: one rank on each of so many simulated hosts, of which the first one's is killed. Prints JSON:
/// the seconds from the agent's report of it until the agents of all other hosts have received the notice.
///
/// The head is the launcher's own Job, with the membership and the supervisor of elastic jobs. The agents are a
/// stand-in: they live in one other process, over one socket pair each, with real frames, and start no processes.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/parse.hpp"
#include "base/version.hpp"
#include "hostfile/parse_hosts.hpp"
#include "launcher/channel/fd_channel.hpp"
#include "launcher/channel/frame_writer.hpp"
#include "launcher/channel/messages.hpp"
#include "launcher/job/job.hpp"
#include "launcher/network/probe_messages.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob::benchmark {
namespace {

namespace asio = boost::asio;

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

/// Returns the time of a clock that both processes share.
double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void end_at(const std::exception_ptr& error) {
  if (error) std::rethrow_exception(error);
}

/// The state that all agents share.
struct Progress {
  int hosts = 0;
  int running = 0;   ///< agents whose rank has entered elastic.run()
  int notified = 0;  ///< other agents that have received the notice of the loss
  double lost_at = 0;
};

class SimulatedAgent {
 public:
  SimulatedAgent(asio::io_context& context, UniqueFd input, UniqueFd output, Progress& progress, int index)
      : context_(context),
        channel_(context.get_executor(), std::move(input), std::move(output)),
        writer_(context.get_executor()),
        progress_(progress),
        index_(index) {}

  void start() {
    asio::co_spawn(context_, writer_.run(channel_), end_at);
    asio::co_spawn(context_, read_frames(), end_at);
    Hello hello;
    hello.version = kVersion;
    hello.network.interfaces.push_back(
        {.name = "eth0", .addresses = {{fmt::format("10.0.{}.{}", index_ / 250, 1 + index_ % 250), 16}}});
    writer_.send_control(ToLauncher::kHello, -1, encode(hello));
  }

  void lose_rank() {
    Exited exited;
    exited.wait_status = SIGKILL;
    is_lost_ = true;
    progress_.lost_at = now_seconds();
    writer_.send_control(ToLauncher::kExited, process_, encode(exited));
  }

  /// Called when the rank of the last agent has entered.
  std::function<void()> on_all_running;

 private:
  asio::awaitable<void> read_frames() {
    const FrameParser<ToAgent>::OnFrame handler = [this](const FrameHeader<ToAgent>& header, std::string_view payload) {
      on_frame(header, payload);
    };
    for (;;) {
      const FrameParser<ToAgent>::Space space = parser_.space();
      const std::size_t bytes = co_await channel_.read_some(asio::mutable_buffer(space.data, space.size));
      if (bytes == 0 && is_lost_) co_return;  // its host has left the job
      require(bytes != 0, "the launcher has closed a channel");
      parser_.consume(bytes, handler);
    }
  }

  void on_frame(const FrameHeader<ToAgent>& header, std::string_view payload) {
    if (header.type == ToAgent::kLaunch) on_launch(decode<Launch>(payload));
    if (header.type == ToAgent::kProbeListen) on_probe(decode<ProbeListen>(payload));
    if (header.type == ToAgent::kProbeConnect) on_probe(decode<ProbeConnect>(payload));
    if (header.type != ToAgent::kNotice || progress_.lost_at == 0 || is_lost_) return;
    if (rendezvous::notice_from_json(std::string(payload)).ended < 0 || std::exchange(is_notified_, true)) return;
    if (++progress_.notified == progress_.hosts - 1) context_.stop();
  }

  /// The network between simulated hosts works.
  void on_probe(const ProbeListen& listen) {
    const ProbeListening listening{std::vector<ProbePort>(listen.addresses.size(), ProbePort{1, 0}), listen.probe};
    writer_.send_control(ToLauncher::kProbeListening, -1, encode(listening));
  }
  void on_probe(const ProbeConnect& connect) {
    const ProbeResults results{
        std::vector<ProbeOutcome>(connect.targets.size(), ProbeOutcome{ProbeOutcome::Kind::kReached, 0}),
        connect.probe};
    writer_.send_control(ToLauncher::kProbeResults, -1, encode(results));
  }

  void on_launch(const Launch& launch) {
    require(launch.processes.size() == 1, "a host was given another number of processes");
    process_ = launch.processes.front().number;
    writer_.send_control(ToLauncher::kStarted, process_, encode(Started{1000 + process_, {}, {}}));
    writer_.send_control(ToLauncher::kJoined, process_, {});
    writer_.send_control(ToLauncher::kEntered, process_, {});
    if (++progress_.running == progress_.hosts) on_all_running();
  }

  asio::io_context& context_;
  FdChannel channel_;
  FrameWriter<ToLauncher> writer_;
  FrameParser<ToAgent> parser_;
  Progress& progress_;
  const int index_;
  int process_ = -1;
  bool is_lost_ = false;
  bool is_notified_ = false;
};

/// Returns the seconds.
double simulate_agents(std::vector<UniqueFd> sockets) {
  asio::io_context context(1);
  Progress progress;
  progress.hosts = static_cast<int>(sockets.size());
  std::vector<std::unique_ptr<SimulatedAgent>> agents;
  for (UniqueFd& socket : sockets) {
    UniqueFd input(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 3));
    agents.push_back(std::make_unique<SimulatedAgent>(context, std::move(input), std::move(socket), progress,
                                                      static_cast<int>(agents.size())));
  }
  // The launcher reads the frames of an agent in their order, so that the loss comes after everybody's start.
  for (const auto& agent : agents) {
    agent->on_all_running = [&] { agents.front()->lose_rank(); };
    agent->start();
  }
  context.run();
  return now_seconds() - progress.lost_at;
}

JobSpec spec_of(int hosts) {
  JobSpec spec;
  spec.allocation = allocate(parse_host_list(fmt::format("node[0001-{:04}]:1", hosts)), {});
  for (int host = 0; host < hosts; ++host) spec.local_hosts.push_back(host);
  spec.elastic.emplace();
  spec.elastic->min_ranks = 1;
  spec.elastic->max_ranks = hosts;
  spec.elastic->rank_restarts = 0;
  spec.command = {"simulated"};
  spec.environment = current_environment();
  spec.working_directory = "/";
  spec.start_timeout = std::chrono::seconds(60);
  return spec;
}

void measure(int hosts) {
  std::map<int, UniqueFd> ours;
  std::vector<UniqueFd> theirs;
  for (int host = 0; host < hosts; ++host) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "no socket pair; raise ulimit -n");
    ours.emplace(host, UniqueFd(ends[0]));
    theirs.emplace_back(ends[1]);
  }
  const pid_t head = ::fork();
  require(head >= 0, "no process");
  if (head == 0) {
    theirs.clear();
    const JobSpec spec = spec_of(hosts);
    Job job(spec, std::move(ours), {});
    ::_exit(job.run());
  }
  ours.clear();
  const double seconds = simulate_agents(std::move(theirs));
  ::kill(head, SIGKILL);
  ::waitpid(head, nullptr, 0);
  fmt::print("{{\"hosts\": {}, \"seconds\": {:.4f}}}\n", hosts, seconds);
}

}  // namespace
}  // namespace runjob::benchmark

int main(int argc, char** argv) {
  using namespace runjob;
  using namespace runjob::benchmark;
  try {
    require(argc == 2, "expected the number of hosts");
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    measure(static_cast<int>(parse_integer(argv[1], "hosts", 2, 100'000)));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "elastic_hosts: error: %s\n", error.what());
    return 1;
  }
}
