#include "launcher/verdict.hpp"

#include <algorithm>
#include <cerrno>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace runjob {
namespace {

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

bool not_found(int error_number) {
  return error_number == ENOENT || error_number == ENOTDIR;
}

}  // namespace

Verdict::Verdict(const Allocation& allocation, std::string command)
    : allocation_(allocation), command_(std::move(command)), ranks_(allocation.placements.size()) {}

void Verdict::rank_started(int rank, std::int64_t pid) {
  at(rank).state = State::kRunning;
  at(rank).pid = pid;
}

void Verdict::rank_not_started(int rank, const StartFailed& failure) {
  at(rank).start_failed = failure;
  if (set_cause(Cause::kNotStarted)) culprit_ = rank;
}

void Verdict::rank_exited(int rank, const Exited& exited) {
  Rank& state = at(rank);
  state.exited = exited;
  const bool clean = WIFEXITED(exited.wait_status) && WEXITSTATUS(exited.wait_status) == 0;
  if (clean) {
    state.state = State::kOk;
  } else if (exited.stopped_by_us || cause_ != Cause::kNone) {
    state.state = State::kStopped;
  } else {
    state.state = State::kFailed;
    set_cause(Cause::kRankFailed);
    culprit_ = rank;
  }
}

void Verdict::host_lost(int host, const std::string& how) {
  for (const Placement& placement : allocation_.placements) {
    if (placement.host == host && running(placement.rank)) at(placement.rank).state = State::kLost;
  }
  if (!set_cause(Cause::kHostLost)) return;
  culprit_ = host;
  detail_ = how;
}

void Verdict::host_not_reached(int host, const std::string& why) {
  const std::string& name = allocation_.hosts.at(static_cast<std::size_t>(host)).name;
  unreached_[host] = why.starts_with(name + ": ") ? why : fmt::format("{}: {}", name, why);
  set_cause(Cause::kNotReached);
}

std::vector<std::string> Verdict::unreached_hosts() const {
  std::vector<std::string> lines;
  for (const auto& [host, line] : unreached_) lines.push_back(line);
  return lines;
}

void Verdict::interrupted(int signal) {
  if (set_cause(Cause::kInterrupted)) culprit_ = signal;
}

void Verdict::start_timeout(const std::string& missing) {
  if (set_cause(Cause::kStartTimeout)) detail_ = missing;
}

void Verdict::output_closed() {
  set_cause(Cause::kOutputClosed);
}

bool Verdict::set_cause(Cause cause) {
  if (cause_ != Cause::kNone) return false;
  cause_ = cause;
  return true;
}

int Verdict::exit_status() const {
  switch (cause_) {
    case Cause::kNone:
      return 0;
    case Cause::kRankFailed: {
      const int status = at(culprit_).exited->wait_status;
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    case Cause::kNotStarted: {
      const StartFailed& failure = *at(culprit_).start_failed;
      if (failure.step != StartFailed::Step::kExec) return 125;
      return not_found(failure.error_number) ? 127 : 126;
    }
    case Cause::kNotReached:
    case Cause::kHostLost:
    case Cause::kStartTimeout:
      return 125;
    case Cause::kInterrupted:
      return 128 + culprit_;
    case Cause::kOutputClosed:
      return 128 + SIGPIPE;
  }
  return 125;
}

std::string Verdict::how(int rank) const {
  const Rank& state = at(rank);
  if (!state.exited) return "";
  const int status = state.exited->wait_status;
  if (WIFEXITED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  std::string text = fmt::format("was killed by signal {} ({})", WTERMSIG(status), signal_name(WTERMSIG(status)));
  if (state.exited->out_of_memory) text += ", probably by the kernel's out-of-memory killer";
  return text;
}

bool Verdict::running(int rank) const {
  return at(rank).state == State::kRunning;
}

const std::string& Verdict::host_of(int rank) const {
  const int host = allocation_.placements.at(static_cast<std::size_t>(rank)).host;
  return allocation_.hosts.at(static_cast<std::size_t>(host)).name;
}

std::string Verdict::start_failure_message() const {
  const StartFailed& failure = *at(culprit_).start_failed;
  const std::string reason = ::strerror(failure.error_number);
  const std::string& host = host_of(culprit_);
  switch (failure.step) {
    case StartFailed::Step::kFork:
      return fmt::format("{}: cannot start rank {}: {}", host, culprit_, reason);
    case StartFailed::Step::kWorkingDirectory:
      return fmt::format("{}: cannot change to the working directory for rank {}: {}; choose another with --wdir", host,
                         culprit_, reason);
    case StartFailed::Step::kExec:
      break;
  }
  if (not_found(failure.error_number)) {
    const bool searched = command_.find('/') == std::string::npos;
    return fmt::format("{}: command not found: {}{}", host, command_, searched ? " (searched PATH)" : "");
  }
  return fmt::format("{}: cannot execute {}: {}", host, command_, reason);
}

std::string Verdict::message(const StderrLines& stderr_lines) const {
  switch (cause_) {
    case Cause::kNone:
    case Cause::kInterrupted:
    case Cause::kOutputClosed:
      return "";
    case Cause::kNotStarted:
      return start_failure_message();
    case Cause::kNotReached:
      return fmt::format("{}", fmt::join(unreached_hosts(), "\n"));
    case Cause::kHostLost:
      return fmt::format("lost the agent on {}: {}", allocation_.hosts.at(static_cast<std::size_t>(culprit_)).name,
                         detail_);
    case Cause::kStartTimeout:
      return detail_;
    case Cause::kRankFailed:
      break;
  }
  std::string text =
      fmt::format("rank {} on {} (pid {}) {}", culprit_, host_of(culprit_), at(culprit_).pid, how(culprit_));
  const auto stopped =
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.state == State::kStopped; });
  if (stopped > 0) text += fmt::format("; stopped {} other {}", stopped, stopped == 1 ? "rank" : "ranks");
  const std::vector<std::string> lines = stderr_lines(culprit_);
  if (!lines.empty()) text += "\n  the last lines of its stderr:";
  for (const std::string& line : lines) text += "\n    " + line;
  return text;
}

std::string Verdict::to_json(const std::string& job_id, const StderrLines& stderr_lines) const {
  constexpr const char* kStates[] = {"not started", "running", "ok", "failed", "stopped", "lost"};
  using Json = nlohmann::ordered_json;
  Json ranks = Json::array();
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& state = ranks_[i];
    const int rank = static_cast<int>(i);
    Json entry = {{"rank", rank}, {"host", host_of(rank)}, {"outcome", kStates[static_cast<std::size_t>(state.state)]}};
    entry["pid"] = state.pid == 0 ? Json(nullptr) : Json(state.pid);
    const bool exited = state.exited && WIFEXITED(state.exited->wait_status);
    const bool signaled = state.exited && WIFSIGNALED(state.exited->wait_status);
    entry["status"] = exited ? Json(WEXITSTATUS(state.exited->wait_status)) : Json(nullptr);
    entry["signal"] = signaled ? Json(WTERMSIG(state.exited->wait_status)) : Json(nullptr);
    entry["out_of_memory"] = state.exited && state.exited->out_of_memory;
    entry["cpu_seconds"] = state.exited ? Json(state.exited->cpu_seconds) : Json(nullptr);
    entry["max_rss_kib"] = state.exited ? Json(state.exited->max_rss_kib) : Json(nullptr);
    entry["last_stderr_lines"] = stderr_lines(rank);
    ranks.push_back(std::move(entry));
  }
  const bool a_rank = cause_ == Cause::kRankFailed || cause_ == Cause::kNotStarted;
  const Json document = {{"version", 1},
                         {"job_id", job_id},
                         {"exit_status", exit_status()},
                         {"first_failed_rank", a_rank ? Json(culprit_) : Json(nullptr)},
                         {"message", message(stderr_lines)},
                         {"ranks", std::move(ranks)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace runjob
