#include "launcher/job/host_agents.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "launcher/job/channel_local.hpp"

namespace runjob {
namespace {

/// After the grace period an agent kills its ranks and passes on the rest of their output.
constexpr std::chrono::seconds kEndPatience{5};

}  // namespace

HostAgents::HostAgents(boost::asio::io_context& context, const JobSpec& spec, OutputRelay& output, Events& events)
    : context_(context), spec_(spec), output_(output), events_(events), hosts_(spec.allocation.hosts.size()) {
  for (const Placement& placement : spec.allocation.placements) add_process(placement.host);
}

void HostAgents::reach(std::map<int, UniqueFd> local_agents, const MakeHostConnector& make_connector) {
  const auto executor = context_.get_executor();
  AgentSession::Events& events = *this;
  if (make_connector) connector_ = make_connector(executor, spec_);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const int host = static_cast<int>(i);
    hosts_[i].session = std::make_unique<AgentSession>(context_, host, events, make_alarm(executor));
    const auto local = local_agents.find(host);
    if (local != local_agents.end()) {
      hosts_[i].session->start(local_channel(executor, std::move(local->second)));
      watch_local_agent(host);
      continue;
    }
    const auto on_message = [this, host](std::string_view line) {
      // Before the agent is ready, the line is a part of the error, if there is one.
      if (at(host).hello) log::warn("{}: {}", name(host), line);
    };
    hosts_[i].session->open([this, i, on_message] { return connector_->open(spec_.allocation.hosts[i], on_message); });
  }
}

/// A channel on this host breaks when the agent ends, but not when it is stopped.
void HostAgents::watch_local_agent(int host) {
  LocalAgentWatch::Events events;
  events.on_stopped = [this, host](const std::string& why) { at(host).session->abandon(why); };
  events.on_late = [this, host](const std::string& what) { log::warn("{}: {}", name(host), what); };
  at(host).watch = std::make_unique<LocalAgentWatch>(make_alarm(context_.get_executor()), std::move(events));
}

void HostAgents::send(int host, ToAgent type, std::string payload, int process) {
  at(host).session->send(type, process, std::move(payload));
}

void HostAgents::send_to_all(ToAgent type, const std::string& payload) {
  for (const HostState& host : hosts_) {
    if (!host.ended) host.session->send(type, -1, payload);
  }
}

void HostAgents::send_output_credit(int rank, Stream stream, std::int64_t bytes) {
  at(host_of(rank)).session->send_output_credit(rank, stream, bytes);
}

void HostAgents::send_input(int rank, const std::string& bytes) {
  at(host_of(rank)).session->send_input(rank, bytes);
}

void HostAgents::signal_ranks(int number) {
  for (const HostState& host : hosts_) {
    if (host.ended) continue;
    if (number == SIGSTOP) host.session->pause_heartbeat();
    host.session->send(ToAgent::kSignal, -1, encode(Signal{number}));
    if (number == SIGCONT) host.session->resume_heartbeat();
  }
}

void HostAgents::end_ranks(const End& message) {
  const std::vector<int>& local = spec_.local_hosts;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].ended) continue;
    hosts_[i].session->send(ToAgent::kEnd, -1, encode(message));
    if (hosts_[i].watch) hosts_[i].watch->expect_end(std::chrono::milliseconds(message.grace_ms) + kEndPatience);
    const bool is_local = std::count(local.begin(), local.end(), static_cast<int>(i)) != 0;
    if (hosts_[i].starting() && !is_local) hosts_[i].session->abandon("the job ended first");
  }
}

void HostAgents::when_sent(const std::function<void()>& done) {
  const auto left = std::make_shared<std::size_t>(hosts_.size());  // owners: each host's callback
  const auto one_less = [left, done] {
    if (--*left == 0) done();
  };
  for (const HostState& host : hosts_) {
    if (host.ended) {
      boost::asio::post(context_, one_less);
    } else {
      host.session->when_sent(one_less);
    }
  }
}

void HostAgents::finish() {
  if (connector_) connector_->finish();
}

bool HostAgents::any_starting() const {
  return std::any_of(hosts_.begin(), hosts_.end(), [](const HostState& host) { return host.starting(); });
}

bool HostAgents::all_ended() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const HostState& host) { return host.ended; });
}

HostCores HostAgents::cores_of(int host) const {
  HostCores result{name(host)};
  if (const auto& hello = at(host).hello) {
    result.usable = hello->cores;
    result.online = hello->online_cores;
  }
  for (const Placement& placement : spec_.allocation.placements) {
    if (placement.host == host) result.local_size = placement.local_size;
  }
  return result;
}

std::int64_t HostAgents::milliseconds_since_start() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began_).count();
}

void HostAgents::on_frame(int host, const FrameHeader<ToLauncher>& header, std::string_view payload) {
  const bool is_rank = header.rank >= 0 && header.rank < std::ssize(host_of_process_);
  if (is_rank ? host_of(header.rank) != host : header.rank != -1) {
    throw Error(Errc::kProtocol, fmt::format("it sent a frame for rank {}, which is not on that host", header.rank));
  }
  if (header.type == ToLauncher::kOutput) return output_.on_output(header.rank, header.stream, header.time_us, payload);
  if (header.type == ToLauncher::kHello) return on_hello(host, decode<Hello>(payload));
  if (header.type == ToLauncher::kFinished) return static_cast<void>(at(host).finished = true);
  events_.on_frame(host, header, payload);
}

void HostAgents::on_hello(int host, Hello hello) {
  if (hello.version != kVersion) {
    throw Error(Errc::kProtocol, fmt::format("the agent on {} is of version {}, not {}; install runjob again",
                                             name(host), hello.version, kVersion));
  }
  log::info("the agent on {} is ready after {} ms (pid {}, {} cores)", name(host), milliseconds_since_start(),
            hello.pid, hello.cores);
  at(host).hello = std::move(hello);
  if (at(host).watch) at(host).watch->start(static_cast<pid_t>(at(host).hello->pid));
  events_.on_agent_ready(host);
}

void HostAgents::on_batch_end(int) {
  output_.flush();
  events_.on_batch_end();
}

void HostAgents::on_end(int host, const std::string& how) {
  HostState& state = at(host);
  const bool was_starting = state.starting();
  state.ended = true;
  if (state.watch) state.watch->stop();
  if (was_starting) return events_.on_agent_end(host, AgentEnd::kNotReached, how);
  if (state.finished) return events_.on_agent_end(host, AgentEnd::kFinished, how);
  const std::chrono::duration<double> standstill = state.session->standstill();
  if (standstill < Heartbeat::kLongestSilence) return events_.on_agent_end(host, AgentEnd::kLost, how);
  events_.on_agent_end(host, AgentEnd::kStoodStill,
                       fmt::format("runjob itself stood still for {:.0f} s; a host ends its ranks when it has received "
                                   "nothing for {} s",
                                   standstill.count(), std::chrono::seconds(Heartbeat::kLongestSilence).count()));
}

}  // namespace runjob
