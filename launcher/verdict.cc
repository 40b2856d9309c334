#include "launcher/verdict.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "launcher/rank_list.hpp"

namespace runjob {
namespace {

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

/// For the status file.
const char* cause_word(Verdict::Cause cause) {
  switch (cause) {
    case Verdict::Cause::kNone:
      return "none";
    case Verdict::Cause::kRankFailed:
      return "rank failed";
    case Verdict::Cause::kNotStarted:
      return "not started";
    case Verdict::Cause::kNotReached:
      return "not reached";
    case Verdict::Cause::kNoNetwork:
      return "no network";
    case Verdict::Cause::kHostLost:
      return "host lost";
    case Verdict::Cause::kInterrupted:
      return "interrupted";
    case Verdict::Cause::kStartTimeout:
      return "start timeout";
    case Verdict::Cause::kTimeLimit:
      return "timeout";
    case Verdict::Cause::kOutputClosed:
      return "output closed";
  }
  return "none";
}

bool not_found(int error_number) {
  return error_number == ENOENT || error_number == ENOTDIR;
}

}  // namespace

Verdict::Verdict(const Allocation& allocation, std::string command, bool continue_on_failure)
    : allocation_(allocation),
      command_(std::move(command)),
      continue_on_failure_(continue_on_failure),
      ranks_(allocation.placements.size()) {}

void Verdict::rank_started(int rank, std::int64_t pid) {
  at(rank).state = State::kRunning;
  at(rank).pid = pid;
}

void Verdict::rank_not_started(int rank, const StartFailed& failure) {
  at(rank).start_failed = failure;
  note({Cause::kNotStarted, rank, {}});
}

void Verdict::rank_exited(int rank, const Exited& exited) {
  Rank& state = at(rank);
  state.exited = exited;
  const bool clean = WIFEXITED(exited.wait_status) && WEXITSTATUS(exited.wait_status) == 0;
  if (first_.cause == Cause::kRankFailed && first_.culprit == rank) {
    state.state = State::kFailed;  // it was named before it ended
  } else if (clean) {
    state.state = State::kOk;
  } else if (exited.stopped_by_us || ends_job()) {
    state.state = State::kStopped;
  } else if (state.lost_another) {
    state.state = State::kVictim;
    victims_.push_back(rank);
  } else {
    state.state = State::kFailed;
    failed_.push_back(rank);
    if (failing_ < 0 || failing_ == rank || !running(failing_)) note_failure(rank);
  }
  if (unsettled() && !culprit_may_come()) settle();
}

void Verdict::rank_joined(int rank) {
  at(rank).lost_another = false;
  if (failing_ == rank) failing_ = -1;
}

void Verdict::rank_failing(int rank, bool own, const std::string& reason) {
  if (!running(rank)) return;
  if (!own) {
    at(rank).lost_another = failing_ != rank;
  } else if (!at(rank).lost_another && failing_ < 0) {
    failing_ = rank;
    reason_ = reason;
  }
}

bool Verdict::unsettled() const {
  if (first_.cause != Cause::kNone) return false;
  return (failing_ >= 0 && running(failing_)) || !failed_.empty() || !victims_.empty();
}

/// Whether one is still running that may have failed before those that have ended.
bool Verdict::culprit_may_come() const {
  if (failing_ >= 0) return running(failing_);
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.state == State::kRunning && !rank.lost_another; });
}

void Verdict::settle() {
  if (!unsettled()) return;
  if (failing_ >= 0 && running(failing_)) {
    failed_.push_back(failing_);
    return note_failure(failing_);
  }
  if (failed_.empty()) {  // the one that they lost did not fail
    failed_.push_back(victims_.front());
    victims_.erase(victims_.begin());
    at(failed_.front()).state = State::kFailed;
  }
  note_failure(failed_.front());
}

void Verdict::note_failure(int rank) {
  note({Cause::kRankFailed, rank, {}}, !continue_on_failure_);
}

void Verdict::host_lost(int host, const std::string& how) {
  for (const Placement& placement : allocation_.placements) {
    if (placement.host == host && running(placement.rank)) at(placement.rank).state = State::kLost;
  }
  note({Cause::kHostLost, host, how});
}

void Verdict::host_not_reached(int host, const std::string& why) {
  const std::string& name = allocation_.hosts.at(static_cast<std::size_t>(host)).name;
  unreached_[host] = why.starts_with(name + ": ") ? why : fmt::format("{}: {}", name, why);
  note({Cause::kNotReached, host, {}});
}

std::vector<std::string> Verdict::unreached_hosts() const {
  std::vector<std::string> lines;
  for (const auto& [host, line] : unreached_) lines.push_back(line);
  return lines;
}

void Verdict::no_network(const Status& status) {
  note({Cause::kNoNetwork, status.code() == Errc::kUsage ? 2 : 125, status.message()});
}

void Verdict::interrupted(int signal) {
  note({Cause::kInterrupted, signal, {}});
}

void Verdict::start_timeout(const std::string& missing) {
  note({Cause::kStartTimeout, -1, missing});
}

void Verdict::time_limit_reached(std::chrono::milliseconds limit) {
  note({Cause::kTimeLimit, -1, fmt::format("{} s", std::chrono::duration<double>(limit).count())});
}

void Verdict::output_closed() {
  note({Cause::kOutputClosed, -1, {}});
}

void Verdict::note(Event event, bool ends_job) {
  if (ends_job && ending_.cause == Cause::kNone) ending_ = event;
  if (first_.cause == Cause::kNone) first_ = std::move(event);
}

int Verdict::exit_status() const {
  switch (first_.cause) {
    case Cause::kNone:
      return 0;
    case Cause::kRankFailed: {
      if (!ended_by_itself(first_.culprit)) return 1;  // as an uncaught exception gives
      const int status = at(first_.culprit).exited->wait_status;
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    case Cause::kNotStarted: {
      const StartFailed& failure = *at(first_.culprit).start_failed;
      if (failure.step != StartFailed::Step::kExec) return 125;
      return not_found(failure.error_number) ? 127 : 126;
    }
    case Cause::kNoNetwork:
      return first_.culprit;
    case Cause::kNotReached:
    case Cause::kHostLost:
    case Cause::kStartTimeout:
      return 125;
    case Cause::kTimeLimit:
      return 124;  // as timeout(1)
    case Cause::kInterrupted:
      return 128 + first_.culprit;
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

bool Verdict::ended_by_itself(int rank) const {
  const std::optional<Exited>& exited = at(rank).exited;
  return exited && !exited->stopped_by_us && exited->wait_status != 0;
}

bool Verdict::running(int rank) const {
  return at(rank).state == State::kRunning;
}

std::vector<int> Verdict::running_ranks() const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].state == State::kRunning) ranks.push_back(static_cast<int>(i));
  }
  return ranks;
}

const std::string& Verdict::host_of(int rank) const {
  const int host = allocation_.placements.at(static_cast<std::size_t>(rank)).host;
  return allocation_.hosts.at(static_cast<std::size_t>(host)).name;
}

std::string Verdict::start_failure_message(int rank) const {
  const StartFailed& failure = *at(rank).start_failed;
  const std::string reason = ::strerror(failure.error_number);
  const std::string& host = host_of(rank);
  switch (failure.step) {
    case StartFailed::Step::kFork:
      return fmt::format("{}: cannot start rank {}: {}", host, rank, reason);
    case StartFailed::Step::kWorkingDirectory:
      return fmt::format("{}: cannot change to the working directory for rank {}: {}; choose another with --wdir", host,
                         rank, reason);
    case StartFailed::Step::kAffinity:
      return fmt::format("{}: cannot bind rank {} to its CPUs: {}", host, rank, reason);
    case StartFailed::Step::kPlacement:
      return fmt::format("{}: {}", host, failure.text);
    case StartFailed::Step::kExec:
      break;
  }
  if (not_found(failure.error_number)) {
    const bool searched = command_.find('/') == std::string::npos;
    return fmt::format("{}: command not found: {}{}", host, command_, searched ? " (searched PATH)" : "");
  }
  return fmt::format("{}: cannot execute {}: {}", host, command_, reason);
}

std::string Verdict::rank_failure_message(int rank) const {
  std::string text = fmt::format("rank {} on {} (pid {}) {}", rank, host_of(rank), at(rank).pid,
                                 ended_by_itself(rank) ? how(rank) : "failed");
  if (rank == failing_ && !reason_.empty()) text += ": " + reason_;
  return text;
}

/// "; stopped 3 ranks", or "" when none was.
std::string Verdict::stopped_text(const char* other) const {
  const auto stopped =
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.state == State::kStopped; });
  if (stopped == 0) return "";
  return fmt::format("; stopped {} {}{}", stopped, other, stopped == 1 ? "rank" : "ranks");
}

/// Those that failed after the first one, alike ones together.
std::string Verdict::other_failures() const {
  std::map<std::string, std::vector<int>> by_end;
  for (const int rank : failed_) {
    if (rank != first_.culprit) by_end[how(rank)].push_back(rank);
  }
  for (const int rank : victims_) by_end[how(rank) + " because another rank had left"].push_back(rank);
  std::string text;
  for (const auto& [end, ranks] : by_end) text += fmt::format("\n  {} {}", ranks_text(ranks), end);
  return text;
}

/// "" for what the user did.
std::string Verdict::describe(const Event& event) const {
  switch (event.cause) {
    case Cause::kNone:
    case Cause::kInterrupted:
    case Cause::kOutputClosed:
      return "";
    case Cause::kRankFailed:
      return rank_failure_message(event.culprit) + stopped_text("other ");
    case Cause::kNotStarted:
      return start_failure_message(event.culprit);
    case Cause::kNotReached:
      return fmt::format("{}", fmt::join(unreached_hosts(), "\n"));
    case Cause::kNoNetwork:
      return event.detail;
    case Cause::kHostLost:
      return fmt::format("lost the agent on {}: {}", allocation_.hosts.at(static_cast<std::size_t>(event.culprit)).name,
                         event.detail);
    case Cause::kStartTimeout:
      return event.detail;
    case Cause::kTimeLimit:
      return fmt::format("the job did not end within the {} of --timeout{}", event.detail, stopped_text(""));
  }
  return "";
}

std::string Verdict::message(const StderrLines& stderr_lines) const {
  std::string text = describe(first_);
  if (first_.cause != Cause::kRankFailed) return text;
  const std::vector<std::string> lines = stderr_lines(first_.culprit);
  if (!lines.empty()) text += "\n  the last lines of its stderr:";
  for (const std::string& line : lines) text += "\n    " + line;
  text += other_failures();
  const std::string ending = ending_.cause == first_.cause ? "" : describe(ending_);
  return ending.empty() ? text : fmt::format("{}\n  then {}", text, ending);
}

std::string Verdict::to_json(const std::string& job_id, const StderrLines& stderr_lines) const {
  constexpr const char* kStates[] = {"not started", "running", "ok", "failed", "stopped", "lost", "victim"};
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
  const bool a_rank = first_.cause == Cause::kRankFailed || first_.cause == Cause::kNotStarted;
  const Json document = {{"version", 1},
                         {"job_id", job_id},
                         {"exit_status", exit_status()},
                         {"cause", cause_word(first_.cause)},
                         {"first_failed_rank", a_rank ? Json(first_.culprit) : Json(nullptr)},
                         {"failed_ranks", failed_},
                         {"message", message(stderr_lines)},
                         {"ranks", std::move(ranks)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace runjob
