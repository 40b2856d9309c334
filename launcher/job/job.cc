#include "launcher/job/job.hpp"

#include <cerrno>
#include <cstring>
#include <signal.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files/named_file.hpp"
#include "base/log.hpp"
#include "hostfile/rank_list.hpp"
#include "launcher/job/make_supervisor.hpp"
#include "launcher/job/output_options.hpp"
#include "launcher/supervision/core_notices.hpp"
#include "launcher/supervision/outcome_report.hpp"

namespace runjob {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kInputWindow = 256 * 1024;
constexpr std::size_t kShownStderrLines = 10;
constexpr int kMostRemainingReports = 8;  // of a host, which sends one each time that its ranks are told to end

/// Shows the status as a row of the terminal. Without a terminal each new status becomes a line for users who ask for
/// them.
StartStatus::Show show_on(OutputRelay& output) {
  return [&output, last = std::string()](const std::string& line, const std::string& what) mutable {
    if (output.has_status()) return output.set_status(line.empty() ? "" : "runjob: " + line);
    if (!what.empty() && what != last) log::info("{}", line);
    last = what;
  };
}

void write_status_file(const std::string& path, const std::string& text) {
  try {
    const UniqueFd file = open_named_file(path, "--status-file");
    std::size_t written = 0;
    while (written < text.size()) {
      const ssize_t count = ::write(file.get(), text.data() + written, text.size() - written);
      if (count < 0 && errno != EINTR) throw system_error(fmt::format("cannot write the status file {}", path), errno);
      if (count > 0) written += static_cast<std::size_t>(count);
    }
  } catch (const Error& error) {
    log::error("{}", error.what());
  }
}

/// Names the requests of the user that came to nothing, although the job may have ended well. `lost_input`: the bytes
/// that were taken for rank 0, which read none.
void warn_of_lost_requests(const JobSpec& spec, const JobOutcome& outcome, bool any_joined, std::int64_t lost_input) {
  // Input that somebody types at a terminal is for the job, or for nobody.
  if (lost_input > 0 && ::isatty(STDIN_FILENO) == 0) log::warn("{}", lost_input_notice(lost_input));
  const bool is_over = outcome.exit_status() == 0 || outcome.ending.cause == JobOutcome::Cause::kTimeLimit;
  if (any_joined || !is_over) return;
  if (const std::string notice = idle_options_notice(spec.runtime_options); !notice.empty()) log::warn("{}", notice);
}

}  // namespace

Job::Job(const JobSpec& spec, std::map<int, UniqueFd> local_agents, const MakeHostConnector& make_connector)
    : spec_(spec),
      end_signals_(context_.get_executor(), [this](int number, bool again) { interrupt(number, again); }),
      forwarding_(context_.get_executor(), signal_hooks()),
      time_limit_timer_(context_),
      output_(context_.get_executor(), output_options(spec, kOutputWindow),
              [this](int process, Stream stream, std::int64_t bytes) {
                agents_.send_output_credit(process, stream, bytes);
              }),
      input_(context_.get_executor(), STDIN_FILENO, kInputWindow,
             [this](const std::string& bytes) { agents_.send_input(0, bytes); }),
      status_(context_.get_executor(), spec.allocation, show_on(output_)),
      agents_(context_, spec, output_, *this),
      launch_(context_.get_executor(), spec, agents_),
      supervisor_(runjob::make_supervisor(context_.get_executor(), spec, stopped_, agents_, launch_, output_,
                                          [this](const Verdict& verdict) { end_because(verdict); })) {
  if (spec.call) call_.emplace(context_.get_executor(), *spec.call, [this] { interrupt(SIGTERM, false); });
  for (std::size_t host = 0; host < spec.allocation.hosts.size(); ++host) {
    if (!local_agents.contains(static_cast<int>(host)))
      status_.line().host(static_cast<int>(host), StatusLine::HostPhase::kConnecting);
  }
  agents_.reach(std::move(local_agents), make_connector);
  launch_.on_not_joined = [this](int host, const std::string& why) { supervisor_->host_not_joined(host, why); };
  if (!launch_.needs_addresses()) enter(Phase::kRunning);
}

Job::~Job() = default;

int Job::run() {
  output_.on_progress = [this] { leave_if_done(); };
  end_signals_.start();
  forwarding_.start();
  status_.start();
  if (spec_.time_limit) watch_time_limit(*spec_.time_limit);
  context_.run();
  agents_.finish();
  const int status = conclude();
  output_.drain();
  return status;
}

/// Moves on to `next` and begins it. Has no effect if the job is that far already.
void Job::enter(Phase next) {
  if (next <= phase_) return;
  phase_ = next;
  switch (next) {
    case Phase::kReaching:
      return;
    case Phase::kProbing:
      return launch_.find_addresses([this](const Status& status) { on_addresses(status); });
    case Phase::kRunning:
      return launch_.launch();
    case Phase::kTracing:
      return collect_stacks();
    case Phase::kEnding:
      status_.stop();
      time_limit_timer_.cancel();
      return supervisor_->ranks_are_ending();
    case Phase::kLeaving:
      if (stacks_) report_stacks();
      return output_.finish();
  }
}

void Job::on_agent_ready(int host) {
  if (launch_.take_in(host)) return;
  if (const std::string notice = affinity_notice(agents_.cores_of(host));
      !notice.empty() && spec_.bind_to == BindTo::kNone)
    log::warn("{}", notice);
  status_.line().host(host, StatusLine::HostPhase::kReady);
  status_.update();
  const bool all_ready = !agents_.any_starting() && supervisor_->verdict().cause() == Verdict::Cause::kNone;
  if (launch_.needs_addresses() && all_ready) enter(Phase::kProbing);
}

void Job::on_addresses(const Status& status) {
  supervisor_->verdict().hosts_reached_over(launch_.interfaces());
  if (status.ok()) return enter(Phase::kRunning);
  if (phase_ >= Phase::kEnding) return;
  supervisor_->verdict().no_network(status);
  end_if_caused();
}

void Job::on_frame(int host, const FrameHeader<ToLauncher>& header, std::string_view payload) {
  const int process = header.process;
  switch (header.type) {
    case ToLauncher::kStarted:
      return on_started(process, decode<Started>(payload));
    case ToLauncher::kStartFailed:
      status_.line().rank_ended(process);
      return supervisor_->not_started(process, decode<StartFailed>(payload));
    case ToLauncher::kInputCredit:
      if (process != 0)
        throw Error(Errc::kProtocol, fmt::format("it gave credit for the input of rank {}, which has none", process));
      return input_.add_credit(decode<Credit>(payload).bytes);
    case ToLauncher::kExited:
      return on_exited(process, decode<Exited>(payload));
    case ToLauncher::kJoined:
      return on_joined(process);
    case ToLauncher::kEntered:
      return supervisor_->entered(process);
    case ToLauncher::kRequest:
      return on_request(host, decode<RelayedRequest>(payload));
    case ToLauncher::kProbeListening:
    case ToLauncher::kProbeResults:
      return launch_.on_probe_frame(host, header.type, payload);
    case ToLauncher::kStackTrace:
      if (!stacks_) throw Error(Errc::kProtocol, "it sent a stack that it was not asked for");
      return stacks_->on_trace(process, decode<StackTrace>(payload));
    case ToLauncher::kToldToEnd:
      if (!spec_.slurm)
        throw Error(Errc::kProtocol, "it reported that SLURM ends the job, which SLURM has not started");
      if (phase_ >= Phase::kEnding) return;
      log::warn("SLURM ends the job: it has sent SIGTERM to its processes on {}", agents_.host(host).name);
      return interrupt(SIGTERM, false);
    case ToLauncher::kRemaining:
      if (++remaining_reports_[host] > kMostRemainingReports) return;
      return log::warn(
          "{}", remaining_message(decode<Remaining>(payload), agents_.host(host).name, end_signals_.interrupted()));
    case ToLauncher::kHello:
    case ToLauncher::kOutput:
    case ToLauncher::kFinished:
    case ToLauncher::kHeartbeat:
    case ToLauncher::kFailed:
      return;  // HostAgents and AgentSession handle these
  }
}

void Job::on_batch_end() {
  watch_output();
  end_if_caused();
}

void Job::watch_output() {
  if (output_.error() != 0) supervisor_->verdict().output_failed(output_.error());
}

void Job::on_agent_end(int host, HostAgents::AgentEnd end, const std::string& how) {
  if (end == HostAgents::AgentEnd::kNotReached) supervisor_->verdict().host_not_reached(host, how);
  launch_.on_agent_gone(host);
  if (end == HostAgents::AgentEnd::kNotJoined) supervisor_->host_not_joined(host, how);
  if (end == HostAgents::AgentEnd::kLost) supervisor_->host_lost(host, how);
  if (end == HostAgents::AgentEnd::kStoodStill)
    supervisor_->verdict().host_lost(host, how, Verdict::Cause::kStoodStill);
  if (stacks_) stacks_->wait_only_for(supervisor_->verdict().running_ranks());
  end_if_caused();
  leave_if_done();
}

void Job::on_started(int process, const Started& report) {
  supervisor_->started(process, report);
  if (spec_.display_map && !report.gpus.empty())
    log::write(log::Level::kOff,  // no level hides it: the user has asked for it
               fmt::format("rank {}: {}{}", process, fmt::join(report.gpus, ", "),
                           report.cpus.empty() ? "" : ", bound to CPUs " + rank_list(report.cpus)),
               {__FILE__, __LINE__});
  status_.line().rank_started(process);
  status_.update();
  if (process == 0 && spec_.forwards_input) input_.start();
}

void Job::on_joined(int process) {
  any_joined_ = true;
  const bool first = supervisor_->joined(process);
  status_.line().rank_joined(process);
  status_.update();
  if (first) announce_threads();
}

void Job::on_exited(int process, const Exited& report) {
  supervisor_->exited(process, report);
  status_.line().rank_ended(process);
  status_.update();
  if (stacks_) stacks_->on_rank_gone(process);
  if (process != 0) return;
  input_.stop();
  if (report.input_read == 0 && !report.stopped_by_us) lost_input_ = input_.taken();
}

void Job::on_request(int host, RelayedRequest message) {
  rendezvous::Reply reply = [this, host, id = message.id](rendezvous::Response response) {
    agents_.send(host, ToAgent::kReply, encode(RelayedReply{id, std::move(response)}));
  };
  if (is_foreign(host, message.request.process))
    return reply(rendezvous::error_response(
        403, fmt::format("rank {} is not on {}", message.request.process, agents_.host(host).name)));
  if (call_ && CallRelay::takes(message.request)) {
    if (message.request.process < 0 || supervisor_->host_of(message.request.process) < 0)
      return reply(rendezvous::error_response(400, fmt::format("the job has no process {}", message.request.process)));
    return call_->handle(std::move(message.request), std::move(reply));
  }
  supervisor_->request(std::move(message.request), std::move(reply));
}

/// True for a request in the name of a process that another host has: what a host sends counts only for its own ranks.
/// The process may have ended. One that was never known is not on any host.
bool Job::is_foreign(int host, int process) {
  const int its_host = process < 0 ? -1 : supervisor_->host_of(process);
  if (its_host < 0 || its_host == host) return false;
  if (foreign_hosts_.insert(host).second)
    log::warn("a process on {} sent requests in the name of rank {}, which is on {}; they were refused",
              agents_.host(host).name, process, agents_.host(its_host).name);
  return true;
}

void Job::announce_threads() {
  std::vector<HostCores> hosts;
  for (std::size_t i = 0; i < spec_.allocation.hosts.size(); ++i)
    hosts.push_back(agents_.cores_of(static_cast<int>(i)));
  const bool set = spec_.environment.contains("OMP_NUM_THREADS") ||
                   spec_.environment_overrides.contains("OMP_NUM_THREADS") || spec_.map_by.cores_per_rank > 0;
  if (const std::string notice = set ? "" : threads_notice(hosts); !notice.empty()) log::info("{}", notice);
}

SignalForwarding::Hooks Job::signal_hooks() {
  SignalForwarding::Hooks hooks;
  hooks.send = [this](int number) { agents_.signal_ranks(number); };
  hooks.when_sent = [this](const std::function<void()>& done) { agents_.when_sent(done); };
  hooks.before_stop = [this] { output_.hide_rows(); };
  hooks.after_stop = [this](std::chrono::steady_clock::duration stopped) {  // that time does not count
    stopped_.total += stopped;
    if (spec_.time_limit && phase_ < Phase::kEnding)
      watch_time_limit(time_limit_timer_.expiry() + stopped - std::chrono::steady_clock::now());
  };
  return hooks;
}

void Job::watch_time_limit(std::chrono::steady_clock::duration left) {
  time_limit_timer_.expires_after(left);
  time_limit_timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    supervisor_->verdict().time_limit_reached(*spec_.time_limit);
    end_if_caused();
  });
}

/// The ranks get the first signal, so that a program can save its work.
void Job::interrupt(int signal, bool at_once) {
  supervisor_->verdict().interrupted(signal);
  const auto ranks = supervisor_->verdict().running_ranks().size();
  end_ranks(signal, at_once ? 0ms : spec_.grace_period);
  if (at_once) log::warn("killing all ranks");
  if (!at_once && signal == SIGINT && ranks > 0 && !call_) {
    log::warn("interrupted: {} up to {:.3g} s to end; Ctrl-C again kills",
              ranks == 1 ? "1 rank has" : fmt::format("{} ranks have", ranks),
              std::chrono::duration<double>(spec_.grace_period).count());
  }
}

/// The message names all hosts that cannot be reached, so the job waits until each host is ready or has failed.
void Job::end_if_caused() {
  if (supervisor_->verdict().cause() == Verdict::Cause::kNotReached && agents_.any_starting()) return;
  supervisor_->end_if_caused();
}

void Job::end_because(const Verdict& verdict) {
  if (spec_.stack_traces_on_timeout && verdict.outcome().timed_out()) return enter(Phase::kTracing);
  end_ranks(SIGTERM, spec_.grace_period);
}

void Job::end_ranks(int signal, std::chrono::milliseconds grace) {
  enter(Phase::kEnding);
  const bool told = supervisor_->verdict().cause() == Verdict::Cause::kInterrupted;
  agents_.end_ranks({signal, grace.count(), told});
}

void Job::collect_stacks() {
  status_.stop();
  StackTraces::Hooks hooks;
  hooks.send = [this](ToAgent type) { agents_.send_to_all(type, {}); };
  hooks.before_python = [this] { output_.hold_errors(); };
  hooks.done = [this] {
    if (phase_ == Phase::kTracing) end_ranks(SIGTERM, spec_.grace_period);
  };
  stacks_.emplace(context_.get_executor(), std::move(hooks));
  stacks_->start(supervisor_->verdict().running_ranks());
}

/// All output has arrived. The held part of it that is no stack is shown now.
void Job::report_stacks() {
  std::map<int, std::string> errors = output_.take_errors();
  stack_report_ = stacks_->report(spec_.allocation, errors);
  for (const auto& [process, text] : errors) output_.show_errors(process, text);
}

/// An agent that has finished leaves by itself, and its channel ends when its guard has removed the last trace.
void Job::leave_if_done() {
  if (!agents_.all_ended()) return;
  enter(Phase::kLeaving);
  if (output_.drained()) context_.stop();
}

int Job::conclude() {
  watch_output();  // the last lines may have been written after the last frame
  const Verdict& verdict = supervisor_->verdict();
  const auto all_lines = [this](int rank) {
    return output_.last_stderr_lines(supervisor_->process_of(rank), kShownStderrLines);
  };
  const JobFacts facts{launch_.job_id(), spec_.command, start_, std::chrono::system_clock::now()};
  std::string message = outcome_message(verdict.outcome(), all_lines);
  if (call_) {
    call_->finish(outcome_json(verdict.outcome(), facts, all_lines));  // the caller raises it
  } else if (verdict.cause() == Verdict::Cause::kNotReached) {
    for (const std::string& each : verdict.outcome().unreached_hosts()) log::error("{}", each);
  } else if (!message.empty()) {
    if (verdict.cause() == Verdict::Cause::kTimeLimit && !spec_.stack_traces_on_timeout)
      message += "; --stack-traces-on-timeout shows where the ranks are";
    log::error("{}{}", verdict.cause() == Verdict::Cause::kRankFailed ? spec_.failure_lead : "", message);
  }
  if (!stack_report_.empty()) log::error("{}", stack_report_);
  warn_of_lost_requests(spec_, verdict.outcome(), any_joined_, lost_input_);
  if (spec_.status_file) write_status_file(*spec_.status_file, outcome_json(verdict.outcome(), facts, all_lines));
  return verdict.outcome().exit_status();
}

}  // namespace runjob
