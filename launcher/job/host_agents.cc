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
constexpr const char* kNoConnector = "this program of runjob reaches no other hosts";

}  // namespace

HostAgents::HostAgents(boost::asio::io_context& context, const JobSpec& spec, OutputRelay& output, Events& events)
    : context_(context), spec_(spec), output_(output), events_(events) {
  for (const Host& host : spec.allocation.hosts) add_host(host);
  if (spec.elastic) {
    for (const Host& host : spec.elastic->more_hosts) add_host(host);
  }
  for (const Placement& placement : spec.allocation.placements) add_process(placement.host);
}

void HostAgents::reach(std::map<int, UniqueFd> local_agents, const MakeHostConnector& make_connector) {
  const auto executor = context_.get_executor();
  if (make_connector) connector_ = make_connector(executor, spec_);
  for (std::size_t i = 0; i < spec_.allocation.hosts.size(); ++i) {
    const int host = static_cast<int>(i);
    const auto local = local_agents.find(host);
    hosts_.at(host).is_local = local != local_agents.end();
    hosts_.at(host).ended = false;
    open_session(host, local == local_agents.end() ? nullptr : local_channel(executor, std::move(local->second)));
  }
}

void HostAgents::add_host(Host host) {
  HostState state;
  state.is_local = is_local(spec_, host);
  state.host = std::move(host);
  state.ended = true;
  hosts_.emplace(static_cast<int>(hosts_.size()), std::move(state));
}

void HostAgents::connect(int host) {
  if (ending_) return;
  HostState& state = hosts_.at(host);
  if (state.is_reached()) return static_cast<void>(state.again = true);
  if (state.session) old_sessions_.push_back(std::move(state.session));
  state.watch.reset();
  state.hello.reset();
  state.joins = true;
  state.finished = state.ended = false;
  try {
    if (!state.is_local && !connector_) throw Error(Errc::kUnavailable, kNoConnector);
    open_session(host, state.is_local ? start_local_agent(context_.get_executor()) : nullptr);
  } catch (const Error& error) {
    boost::asio::post(context_, [this, host, why = std::string(error.what())] { on_end(host, why); });
  }
}

std::string HostAgents::refusal(const Host& host) const {
  if (is_local(spec_, host)) return "";
  return connector_ ? connector_->refusal(host) : kNoConnector;
}

/// `local`: the channel to an agent on this host, null for another one. A channel on this host breaks when the agent
/// ends, but not when it is stopped.
void HostAgents::open_session(int host, std::unique_ptr<Channel> local) {
  const auto executor = context_.get_executor();
  HostState& state = hosts_.at(host);
  AgentSession::Events& events = *this;
  state.session = std::make_unique<AgentSession>(context_, host, events, make_alarm(executor));
  if (local) {
    LocalAgentWatch::Events watched;
    watched.on_stopped = [this, host](const std::string& why) { hosts_.at(host).session->abandon(why); };
    watched.on_late = [&state](const std::string& what) { log::warn("{}: {}", state.host.name, what); };
    state.watch = std::make_unique<LocalAgentWatch>(make_alarm(executor), std::move(watched));
    return state.session->start(std::move(local));
  }
  const auto on_message = [&state](std::string_view line) {
    // Before the agent is ready, the line is a part of the error, if there is one.
    if (state.hello) log::warn("{}: {}", state.host.name, line);
  };
  state.session->open([this, &state, on_message] { return connector_->open(state.host, on_message); });
}

void HostAgents::send(int host, ToAgent type, std::string payload, int process) {
  if (const HostState& state = hosts_.at(host); state.session) state.session->send(type, process, std::move(payload));
}

void HostAgents::send_to_all(ToAgent type, const std::string& payload) {
  for (const auto& [index, host] : hosts_) {
    if (host.is_reached()) host.session->send(type, -1, payload);
  }
}

void HostAgents::send_output_credit(int rank, Stream stream, std::int64_t bytes) {
  hosts_.at(host_of(rank)).session->send_output_credit(rank, stream, bytes);
}

void HostAgents::send_input(int rank, const std::string& bytes) {
  hosts_.at(host_of(rank)).session->send_input(rank, bytes);
}

void HostAgents::signal_ranks(int number) {
  for (const auto& [index, host] : hosts_) {
    if (!host.is_reached()) continue;
    if (number == SIGSTOP) host.session->pause_heartbeat();
    host.session->send(ToAgent::kSignal, -1, encode(Signal{number}));
    if (number == SIGCONT) host.session->resume_heartbeat();
  }
}

void HostAgents::end_ranks(const End& message) {
  ending_ = true;
  for (auto& [index, host] : hosts_) {
    if (!host.is_reached()) continue;
    host.again = false;
    host.session->send(ToAgent::kEnd, -1, encode(message));
    if (host.watch) host.watch->expect_end(std::chrono::milliseconds(message.grace_ms) + kEndPatience);
    if (host.starting() && !host.is_local) host.session->abandon("the job ended first");
  }
}

void HostAgents::when_sent(const std::function<void()>& done) {
  const auto left = std::make_shared<std::size_t>(hosts_.size());  // owners: each host's callback
  const auto one_less = [left, done] {
    if (--*left == 0) done();
  };
  for (const auto& [index, host] : hosts_) {
    if (!host.is_reached()) {
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
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const auto& each) { return each.second.starting() && !each.second.joins; });
}

bool HostAgents::all_ended() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& each) { return each.second.ended; });
}

HostCores HostAgents::cores_of(int host) const {
  HostCores result{hosts_.at(host).host.name};
  if (const auto& hello = hosts_.at(host).hello) {
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
  check_process(host, header);
  if (header.type == ToLauncher::kOutput)
    return output_.on_output(header.process, header.stream, header.time_us, payload);
  if (header.type == ToLauncher::kHello) return on_hello(host, decode<Hello>(payload));
  if (header.type == ToLauncher::kFinished) return on_finished(host);
  follow(header.type, header.process);
  events_.on_frame(host, header, payload);
}

/// What a host sends counts only for its own processes.
void HostAgents::check_process(int host, const FrameHeader<ToLauncher>& header) const {
  const bool is_known = header.process >= 0 && header.process < std::ssize(processes_);
  if (is_about_process(header.type) ? is_known && host_of(header.process) == host : header.process == -1) return;
  throw Error(Errc::kProtocol, fmt::format("it sent a frame for rank {}, which is not on that host", header.process));
}

void HostAgents::follow(ToLauncher type, int process) {
  const bool starts = type == ToLauncher::kStarted, fails = type == ToLauncher::kStartFailed;
  if (!starts && !fails && type != ToLauncher::kExited) return;
  Process& state = processes_[static_cast<std::size_t>(process)];
  const Process::Phase expected = starts || fails ? Process::Phase::kAwaited : Process::Phase::kRunning;
  if (state.phase != expected)
    throw Error(Errc::kProtocol, starts || fails
                                     ? fmt::format("it reported a second start of rank {}", process)
                                     : fmt::format("it reported the end of rank {}, which did not run", process));
  state.phase = starts ? Process::Phase::kRunning : Process::Phase::kEnded;
}

void HostAgents::on_finished(int host) {
  for (const Process& process : processes_) {
    if (process.host == host && process.phase == Process::Phase::kRunning)
      throw Error(Errc::kProtocol, fmt::format("it left while rank {} ran there", &process - processes_.data()));
  }
  hosts_.at(host).finished = true;
}

void HostAgents::on_hello(int host, Hello hello) {
  if (hosts_.at(host).hello) throw Error(Errc::kProtocol, "it sent a second hello");
  if (hello.version != kVersion) {
    throw Error(Errc::kProtocol, fmt::format("the agent on {} is of version {}, not {}; install runjob again",
                                             this->host(host).name, hello.version, kVersion));
  }
  log::info("the agent on {} is ready after {} ms (pid {}, {} cores)", this->host(host).name,
            milliseconds_since_start(), hello.pid, hello.cores);
  HostState& state = hosts_.at(host);
  state.hello = std::move(hello);
  if (state.watch) state.watch->start(static_cast<pid_t>(state.hello->pid));
  events_.on_agent_ready(host);
}

void HostAgents::on_batch_end(int) {
  output_.flush();
  events_.on_batch_end();
}

void HostAgents::on_end(int host, const std::string& how) {
  const HostState& state = hosts_.at(host);
  if (!connector_ || state.is_local || state.starting() || state.finished) return end(host, how);
  connector_->explain_end(state.host, [this, host, how](const std::string& reason) {
    end(host, reason.empty() ? how : fmt::format("{}; {}", how, reason));
  });
}

void HostAgents::end(int host, const std::string& how) {
  HostState& state = hosts_.at(host);
  const bool was_starting = state.starting();
  state.ended = true;
  for (Process& process : processes_) {  // the next agent on this host has other ones
    if (process.host == host && process.phase == Process::Phase::kRunning) process.phase = Process::Phase::kEnded;
  }
  if (state.watch) state.watch->stop();
  if (std::exchange(state.again, false)) return connect(host);
  if (was_starting) return events_.on_agent_end(host, state.joins ? AgentEnd::kNotJoined : AgentEnd::kNotReached, how);
  if (state.finished) return events_.on_agent_end(host, AgentEnd::kFinished, how);
  const std::chrono::duration<double> standstill = state.session->standstill();
  if (standstill < Heartbeat::kLongestSilence) return events_.on_agent_end(host, AgentEnd::kLost, how);
  events_.on_agent_end(host, AgentEnd::kStoodStill,
                       fmt::format("runjob itself stood still for {:.0f} s; a host ends its ranks when it has received "
                                   "nothing for {} s",
                                   standstill.count(), std::chrono::seconds(Heartbeat::kLongestSilence).count()));
}

}  // namespace runjob
