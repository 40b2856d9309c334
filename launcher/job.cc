#include "launcher/job.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/one_line.hpp"
#include "base/version.hpp"
#include "launcher/channel_local.hpp"
#include "launcher/core_notices.hpp"
#include "launcher/launch_message.hpp"
#include "launcher/output_options.hpp"
#include "launcher/rank_list.hpp"
#include "launcher/rank_place.hpp"

namespace runjob {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kOutputWindow = 1024 * 1024;  // bytes of one stream under way
constexpr std::int64_t kInputWindow = 256 * 1024;
constexpr std::size_t kShownStderrLines = 10;
constexpr std::size_t kShownReasonBytes = 400;
constexpr auto kCulpritPatience = 4s;
constexpr std::string_view kHorovodrunLead =
    "Horovod detected that one or more processes exited with non-zero status: ";

std::string random_job_id() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) throw system_error("cannot get random bytes", errno);
  return fmt::format("{:016x}", number);
}

}  // namespace

Job::Job(const JobSpec& spec, std::map<int, UniqueFd> local_agents, const MakeHostConnector& make_connector)
    : spec_(spec),
      id_(random_job_id()),
      topology_(rendezvous::to_json(topology_of(spec.allocation))),
      signals_(context_, SIGINT, SIGTERM),
      forwarding_(context_.get_executor(), signal_hooks()),
      verdict_(spec.allocation, spec.command.front(), spec.continue_on_failure),
      rendezvous_(members_of(spec.allocation), spec.start_timeout),
      rendezvous_timer_(context_),
      start_timer_(context_),
      time_limit_timer_(context_),
      culprit_timer_(context_),
      output_(context_.get_executor(), output_options(spec, kOutputWindow),
              [this](int rank, Stream stream, std::int64_t bytes) {
                session_of(rank).send_output_credit(rank, stream, bytes);
              }),
      input_(context_.get_executor(), STDIN_FILENO, kInputWindow,
             [this](const std::string& bytes) { session_of(0).send_input(0, bytes); }),
      status_(context_.get_executor(), spec.allocation,
              [this](const std::string& line, const std::string& what) { show_status(line, what); }),
      connector_(make_connector ? make_connector(context_.get_executor(), spec) : nullptr) {
  if (spec.call) call_.emplace(context_.get_executor(), *spec.call, spec.allocation, [this] { on_signal(SIGTERM); });
  reach_hosts(std::move(local_agents));
}

Job::~Job() = default;

int Job::run() {
  output_.on_progress = [this] { leave_if_done(); };
  rendezvous_.on_failing([this](int rank, const rendezvous::Failing& failing) {
    const std::string reason = one_line(failing.reason.substr(0, kShownReasonBytes));
    log::info("rank {} is failing after {} ms: {}", rank, milliseconds_since_start(), reason);
    verdict_.rank_failing(rank, failing.own, reason);
    watch_culprit();
  });
  if (!is_ignored(SIGHUP)) signals_.add(SIGHUP);  // nohup
  wait_for_signal();
  forwarding_.start();
  status_.start();
  if (spec_.time_limit) watch_time_limit(*spec_.time_limit);
  context_.run();
  if (connector_) connector_->finish();
  return conclude();
}

void Job::reach_hosts(std::map<int, UniqueFd> local_agents) {
  hosts_.resize(spec_.allocation.hosts.size());
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const int host = static_cast<int>(i);
    AgentSession& session = *(hosts_[i].session = std::make_unique<AgentSession>(context_, host, *this));
    const auto local = local_agents.find(host);
    if (local != local_agents.end()) {
      session.start(local_channel(context_.get_executor(), std::move(local->second)));
      continue;
    }
    const auto say = [this, host](std::string_view line) {
      const bool runs = hosts_.at(static_cast<std::size_t>(host)).hello.has_value();
      if (runs) log::warn("{}: {}", host_name(host), line);  // until then it is part of the error, if there is one
    };
    status_.line().host(host, StatusLine::HostPhase::kConnecting);
    session.open([this, i, say] { return connector_->open(spec_.allocation.hosts[i], say); });
  }
  if (!needs_addresses()) launch_ranks();  // nothing of its hello is needed: a short job need not wait for it
}

bool Job::any_host_starting() const {
  return std::any_of(hosts_.begin(), hosts_.end(), [](const HostState& host) { return host.starting(); });
}

void Job::on_frame(int host, const FrameHeader& header, std::string_view payload) {
  const bool of_a_rank = header.rank >= 0 && header.rank < static_cast<int>(spec_.allocation.placements.size());
  if (of_a_rank ? host_of(header.rank) != host : header.rank != -1) {
    throw Error(Errc::kProtocol, fmt::format("the agent on {} speaks for rank {}", host_name(host), header.rank));
  }
  const int rank = header.rank;
  const auto now = rendezvous::Service::TimePoint::clock::now();
  switch (header.type) {
    case FrameType::kHello:
      return on_hello(host, decode<Hello>(payload));
    case FrameType::kStarted: {
      const auto [pid, cpus] = decode<Started>(payload);
      verdict_.rank_started(rank, pid);
      rendezvous_.rank_started(rank, pid, now);
      status_.line().rank_started(rank);
      status_.update();
      log::info("rank {} runs on {} after {} ms (pid {}{})", rank, host_name(host), milliseconds_since_start(), pid,
                cpus.empty() ? "" : ", bound to CPUs " + rank_list(cpus));
      if (rank == 0) input_.start();
      return;
    }
    case FrameType::kStartFailed:
      status_.line().rank_ended(rank);
      return verdict_.rank_not_started(rank, decode<StartFailed>(payload));
    case FrameType::kOutput:
      return output_.on_output(rank, header.stream, header.time_us, payload);
    case FrameType::kInputCredit:
      return input_.add_credit(decode<Credit>(payload).bytes);
    case FrameType::kExited:
      verdict_.rank_exited(rank, decode<Exited>(payload));
      return on_rank_gone(rank);
    case FrameType::kJoined:
      rendezvous_.rank_joined(rank, now);
      verdict_.rank_joined(rank);
      status_.line().rank_joined(rank);
      status_.update();
      log::info("rank {} called init() after {} ms", rank, milliseconds_since_start());
      if (!std::exchange(any_joined_, true)) on_first_join(now);
      return;
    case FrameType::kRequest:
      return on_request(host, decode<RelayedRequest>(payload));
    case FrameType::kProbeListening:
    case FrameType::kProbeResults:
      if (!probe_) break;
      return probe_->on_frame(host, header.type, payload);
    case FrameType::kStackTrace:
      if (!stacks_) break;
      return stacks_->on_trace(rank, decode<StackTrace>(payload));
    case FrameType::kToldToEnd:
      if (ending_) return;
      log::warn("SLURM ends the job: it has sent SIGTERM to its processes on {}", host_name(host));
      return on_signal(SIGTERM);
    case FrameType::kFinished:
      hosts_.at(static_cast<std::size_t>(host)).finished = true;
      return;
    case FrameType::kLaunch:
    case FrameType::kOutputCredit:
    case FrameType::kInput:
    case FrameType::kSignal:
    case FrameType::kEnd:
    case FrameType::kReply:
    case FrameType::kHeartbeat:
    case FrameType::kPause:
    case FrameType::kProbeListen:
    case FrameType::kProbeConnect:
    case FrameType::kProbeEnd:
    case FrameType::kStackTraces:
    case FrameType::kDumpPython:
      break;
  }
  throw Error(Errc::kProtocol, fmt::format("the agent on {} sent a launcher's frame", host_name(host)));
}

void Job::on_batch_end(int) {
  output_.flush();
  if (output_.broken()) verdict_.output_closed();
  end_if_caused();
}

void Job::on_end(int host, const std::string& how) {
  HostState& state = hosts_.at(static_cast<std::size_t>(host));
  const bool was_starting = state.starting();
  state.ended = true;
  if (was_starting) {
    verdict_.host_not_reached(host, how);
  } else if (!state.finished) {
    verdict_.host_lost(host, how);
  }
  if (stacks_) stacks_->wait_only_for(verdict_.running_ranks());
  end_if_caused();
  leave_if_done();
}

std::int64_t Job::milliseconds_since_start() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began_).count();
}

void Job::on_hello(int host, Hello hello) {
  if (hello.version != kVersion) {
    throw Error(Errc::kProtocol, fmt::format("the agent on {} is of version {}, not {}; install runjob again",
                                             host_name(host), hello.version, kVersion));
  }
  log::info("the agent on {} is ready after {} ms (pid {}, {} cores)", host_name(host), milliseconds_since_start(),
            hello.pid, hello.cores);
  hosts_.at(static_cast<std::size_t>(host)).hello = std::move(hello);
  if (const std::string notice = affinity_notice(cores_of(host)); !notice.empty() && spec_.bind_to == BindTo::kNone)
    log::warn("{}", notice);
  status_.line().host(host, StatusLine::HostPhase::kReady);
  status_.update();
  const bool all_there = !any_host_starting() && verdict_.cause() == Verdict::Cause::kNone;
  if (needs_addresses() && all_there) find_addresses();
}

/// All agents are there: lets them find out by which addresses they reach each other.
void Job::find_addresses() {
  std::vector<ProbedHost> probed;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const int host = static_cast<int>(i);
    probed.push_back({host_name(host), hosts_[i].hello->network, is_local(host)});
  }
  const auto send = [this](int host, FrameType type, std::string payload) {
    hosts_.at(static_cast<std::size_t>(host)).session->send(type, -1, std::move(payload));
  };
  probe_.emplace(
      context_.get_executor(), std::move(probed), spec_.network_interfaces, send,
      [this](const Status& status, std::vector<HostAddress> addresses) { on_addresses(status, std::move(addresses)); });
  probe_->start();
}

void Job::on_addresses(const Status& status, std::vector<HostAddress> addresses) {
  if (ending_) return;
  if (!status.ok()) {
    verdict_.no_network(status);
    return end_if_caused();
  }
  addresses_ = std::move(addresses);
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    log::info("{} is reached by the others at {} ({})", host_name(static_cast<int>(i)), addresses_[i].address,
              addresses_[i].interface);
  }
  log::info("the networks are known after {} ms", milliseconds_since_start());
  launch_ranks();
}

void Job::launch_ranks() {
  const JobVariables variables{id_, 0, address_of(host_of(0)).address, master_port()};
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const int host = static_cast<int>(i);
    Launch message = launch_message(spec_, host, variables, address_of(host), kOutputWindow);
    message.topology = topology_;
    hosts_[i].session->send(FrameType::kLaunch, -1, encode(message));
  }
}

/// On rank 0's host; the only host's agent chooses one by itself.
int Job::master_port() const {
  return hosts_.size() == 1 ? 0 : hosts_.at(static_cast<std::size_t>(host_of(0))).hello->free_port;
}

void Job::on_rank_gone(int rank) {
  rendezvous_.rank_exited(rank, verdict_.how(rank), rendezvous::Service::TimePoint::clock::now());
  status_.line().rank_ended(rank);
  status_.update();
  if (stacks_) stacks_->on_rank_gone(rank);
  watch_culprit();
  if (rank == 0) input_.stop();
  if (any_joined_) check_start();
}

void Job::on_request(int host, RelayedRequest message) {
  AgentSession* session = hosts_.at(static_cast<std::size_t>(host)).session.get();
  rendezvous::Reply reply = [session, id = message.id](rendezvous::Response response) {
    session->send(FrameType::kReply, -1, encode(RelayedReply{id, std::move(response)}));
  };
  if (call_ && CallRelay::takes(message.request))
    return call_->handle(host, std::move(message.request), std::move(reply));
  rendezvous_.handle(std::move(message.request), rendezvous::Service::TimePoint::clock::now(), std::move(reply));
  watch_rendezvous();
}

void Job::watch_rendezvous() {
  const auto deadline = rendezvous_.next_deadline();
  if (deadline == rendezvous::Service::TimePoint::max()) return static_cast<void>(rendezvous_timer_.cancel());
  rendezvous_timer_.expires_at(deadline);
  rendezvous_timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    rendezvous_.expire(rendezvous::Service::TimePoint::clock::now());
    watch_rendezvous();
  });
}

HostCores Job::cores_of(int host) const {
  HostCores result{host_name(host)};
  if (const auto& hello = hosts_.at(static_cast<std::size_t>(host)).hello) {
    result.usable = hello->cores;
    result.online = hello->online_cores;
  }
  for (const Placement& placement : spec_.allocation.placements) {
    if (placement.host == host) result.local_size = placement.local_size;
  }
  return result;
}

void Job::on_first_join(rendezvous::Service::TimePoint joined) {
  std::vector<HostCores> hosts;
  for (std::size_t i = 0; i < hosts_.size(); ++i) hosts.push_back(cores_of(static_cast<int>(i)));
  const bool set =
      spec_.environment.contains("OMP_NUM_THREADS") || spec_.environment_overrides.contains("OMP_NUM_THREADS");
  if (const std::string notice = set ? "" : threads_notice(hosts); !notice.empty()) log::warn("{}", notice);
  watch_start(joined);
}

void Job::watch_start(rendezvous::Service::TimePoint joined) {
  start_timer_.expires_at(joined + spec_.start_timeout);
  start_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) check_start();
  });
}

/// Some ranks have called init(): names those that have not, when their time is up or they have ended without
/// it.
void Job::check_start() {
  if (spec_.continue_on_failure) return;  // the others learn it from the rendezvous and decide for themselves
  const std::string missing = rendezvous_.overdue(rendezvous::Service::TimePoint::clock::now());
  if (missing.empty()) return;
  verdict_.start_timeout(missing);
  end_if_caused();
}

/// Some rank has failed, or says so: the one that failed first gets a moment to end by itself, with its own status.
void Job::watch_culprit() {
  if (!verdict_.unsettled() || std::exchange(culprit_awaited_, true)) return;
  culprit_timer_.expires_after(kCulpritPatience);
  culprit_timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    culprit_awaited_ = false;
    verdict_.settle();
    end_if_caused();
  });
}

void Job::wait_for_signal() {
  signals_.async_wait([this](boost::system::error_code error, int number) {
    if (error) return;
    wait_for_signal();
    on_signal(number);
  });
}

SignalForwarding::Hooks Job::signal_hooks() {
  SignalForwarding::Hooks hooks;
  hooks.send = [this](int number) {
    for (const HostState& host : hosts_) {
      if (host.ended) continue;
      if (number == SIGSTOP) host.session->pause_heartbeat();
      host.session->send(FrameType::kSignal, -1, encode(Signal{number}));
      if (number == SIGCONT) host.session->resume_heartbeat();
    }
  };
  hooks.when_sent = [this](const std::function<void()>& done) { when_sent(done); };
  hooks.before_stop = [this] { output_.hide_rows(); };
  hooks.after_stop = [this](std::chrono::steady_clock::duration stopped) {  // that time does not count
    if (spec_.time_limit && !ending_)
      watch_time_limit(time_limit_timer_.expiry() + stopped - std::chrono::steady_clock::now());
  };
  return hooks;
}

void Job::when_sent(const std::function<void()>& done) {
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

void Job::watch_time_limit(std::chrono::steady_clock::duration left) {
  time_limit_timer_.expires_after(left);
  time_limit_timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    verdict_.time_limit_reached(*spec_.time_limit);
    end_if_caused();
  });
}

/// The first one is passed on, so that a program can save its work; the second one of Ctrl-C ends it all at
/// once.
void Job::on_signal(int number) {
  verdict_.interrupted(number);
  const bool again = number == SIGINT && ++interrupts_ > 1;
  if (again) log::warn("killing all ranks");
  end_ranks(number, again ? 0ms : spec_.grace_period);
}

/// Hosts that cannot be reached are all to be named, so the others are waited for.
void Job::end_if_caused() {
  if (!verdict_.ends_job() || ending_) return;
  if (verdict_.cause() == Verdict::Cause::kNotReached && any_host_starting()) return;
  if (spec_.stack_traces_on_timeout && verdict_.timed_out()) return collect_stacks();  // and then
  end_ranks(SIGTERM, spec_.grace_period);
}

void Job::end_ranks(int signal, std::chrono::milliseconds grace) {
  ending_ = true;
  status_.stop();
  start_timer_.cancel();
  time_limit_timer_.cancel();
  culprit_timer_.cancel();
  const bool told = verdict_.cause() == Verdict::Cause::kInterrupted;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].ended) continue;
    hosts_[i].session->send(FrameType::kEnd, -1, encode(End{signal, grace.count(), told}));
    if (hosts_[i].starting() && !is_local(static_cast<int>(i))) hosts_[i].session->abandon("the job ended first");
  }
}

void Job::collect_stacks() {
  if (stacks_) return;
  status_.stop();
  StackTraces::Hooks hooks;
  hooks.send = [this](FrameType type) {
    for (const HostState& host : hosts_) {
      if (!host.ended) host.session->send(type, -1, {});
    }
  };
  hooks.before_python = [this] { output_.hold_errors(); };
  hooks.done = [this] {
    if (!ending_) end_ranks(SIGTERM, spec_.grace_period);
  };
  stacks_.emplace(context_.get_executor(), std::move(hooks));
  stacks_->start(verdict_.running_ranks());
}

/// All output has come. What is no stack of it is shown now.
void Job::report_stacks() {
  std::map<int, std::string> errors = output_.take_errors();
  if (stack_report_.empty()) stack_report_ = stacks_->report(spec_.allocation, errors);
  for (const auto& [rank, text] : errors) output_.show_errors(rank, text);
}

/// On a terminal in its place, else as lines for those who ask for them.
void Job::show_status(const std::string& line, const std::string& what) {
  if (output_.has_status()) return output_.set_status(line.empty() ? "" : "runjob: " + line);
  if (!what.empty() && what != status_said_) log::info("{}", line);
  status_said_ = what;
}

/// An agent that has finished leaves by itself, and its channel ends when its guard has removed the last trace.
void Job::leave_if_done() {
  const auto ended = [](const HostState& host) { return host.ended; };
  if (!std::all_of(hosts_.begin(), hosts_.end(), ended)) return;
  if (stacks_) report_stacks();
  output_.finish();
  if (output_.drained()) context_.stop();
}

int Job::conclude() {
  const auto all_lines = [this](int rank) { return output_.last_stderr_lines(rank, kShownStderrLines); };
  const std::string message = verdict_.message(all_lines);
  if (call_) {
    call_->finish(verdict_.to_json(id_, all_lines));  // the caller raises it
  } else if (verdict_.cause() == Verdict::Cause::kNotReached) {
    for (const std::string& each : verdict_.unreached_hosts()) log::error("{}", each);
  } else if (!message.empty()) {
    const bool lead = spec_.says_as_horovodrun && verdict_.cause() == Verdict::Cause::kRankFailed;
    log::error("{}{}", lead ? kHorovodrunLead : "", message);
  }
  if (!stack_report_.empty()) log::error("{}", stack_report_);
  if (spec_.status_file) {
    std::ofstream file(*spec_.status_file);
    file << verdict_.to_json(id_, all_lines);
    if (!file.flush()) log::error("cannot write the status file {}: {}", *spec_.status_file, std::strerror(errno));
  }
  return verdict_.exit_status();
}

}  // namespace runjob
