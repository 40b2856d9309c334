#include "launcher/supervision/outcome_report.hpp"

#include <algorithm>
#include <sys/wait.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/screen_text.hpp"
#include "base/utc_time.hpp"
#include "hostfile/rank_list.hpp"
#include "launcher/processes/child_process.hpp"

namespace runjob {
namespace {

using Cause = JobOutcome::Cause;

/// The cause in the status file.
const char* cause_name(Cause cause) {
  switch (cause) {
    case Cause::kNone:
      return "none";
    case Cause::kRankFailed:
      return "rank failed";
    case Cause::kNotStarted:
      return "not started";
    case Cause::kNotReached:
      return "not reached";
    case Cause::kNoNetwork:
      return "no network";
    case Cause::kNetworkCut:
      return "network cut";
    case Cause::kMutualWait:
      return "mutual wait";
    case Cause::kHostLost:
      return "host lost";
    case Cause::kStoodStill:
      return "stood still";
    case Cause::kInterrupted:
      return "interrupted";
    case Cause::kStartTimeout:
      return "start timeout";
    case Cause::kTimeLimit:
      return "timeout";
    case Cause::kOutputClosed:
      return "output closed";
    case Cause::kOutputFailed:
      return "output failed";
    case Cause::kCannotGoOn:
      return "cannot go on";
  }
  return "none";
}

/// The outcome of a rank in the status file.
const char* outcome_name(JobOutcome::RankState state) {
  switch (state) {
    case JobOutcome::RankState::kNotStarted:
      return "not started";
    case JobOutcome::RankState::kRunning:
      return "running";
    case JobOutcome::RankState::kOk:
      return "ok";
    case JobOutcome::RankState::kFailed:
      return "failed";
    case JobOutcome::RankState::kStopped:
      return "stopped";
    case JobOutcome::RankState::kLost:
      return "lost";
    case JobOutcome::RankState::kVictim:
      return "victim";
  }
  return "not started";
}

/// What the user probably meant with a command that does not exist: "; to set a variable ...", or "".
std::string hint_for_missing(const std::string& command) {
  const std::size_t equals = command.find('='), blank = command.find(' ');
  const bool sets_variable = equals != std::string::npos && equals > 0 && command.find_first_of("/ ") > equals;
  if (blank != std::string::npos)
    return fmt::format("; if these are several words, leave out the quotes: runjob {}{}", sets_variable ? "-x " : "",
                       command);
  if (sets_variable) return fmt::format("; to set a variable of the ranks, write -x {} before the command", command);
  return "";
}

std::string start_failure_message(const JobOutcome& outcome, int rank) {
  const StartFailed& failure = *outcome.ranks.at(static_cast<std::size_t>(rank)).start_failed;
  const std::string reason = start_error_text(failure.error_number);
  const std::string& host = outcome.host_of(rank);
  switch (failure.step) {
    case StartFailed::Step::kFork:
      return fmt::format("{}: cannot start rank {}: {}", host, rank, reason);
    case StartFailed::Step::kWorkingDirectory:
      return fmt::format("{}: cannot change to the working directory {} for rank {}: {}; choose another with --wdir",
                         host, failure.text, rank, reason);
    case StartFailed::Step::kAffinity:
      return fmt::format("{}: cannot bind rank {} to its CPUs: {}", host, rank, reason);
    case StartFailed::Step::kPlacement:
      return fmt::format("{}: {}", host, failure.text);
    case StartFailed::Step::kExec:
      break;
  }
  const bool is_python = outcome.command.ends_with(".py");
  const std::string hint = is_python ? fmt::format("; did you mean: python {}?", outcome.command) : "";
  if (failure.is_not_found()) {
    const bool searched = outcome.command.find('/') == std::string::npos;
    const std::string missing = hint_for_missing(outcome.command);
    return fmt::format("{}: command not found: {}{}{}", host, outcome.command, searched ? " (searched PATH)" : "",
                       searched && missing.empty() ? hint : missing);
  }
  return fmt::format("{}: cannot execute {}: {}{}", host, outcome.command, reason, hint);
}

std::vector<int> normally_ended(const JobOutcome& outcome) {
  std::vector<int> ended;
  for (std::size_t i = 0; i < outcome.ranks.size(); ++i) {
    if (outcome.ranks[i].state == JobOutcome::RankState::kOk) ended.push_back(static_cast<int>(i));
  }
  return ended;
}

/// The rank only lost others, and none of these failed.
bool is_left_behind(const JobOutcome& outcome, int rank) {
  const JobOutcome::Rank& state = outcome.ranks.at(static_cast<std::size_t>(rank));
  return rank != outcome.report.rank && state.lost_another && !state.lost_reason.empty();
}

std::string left_behind_message(const JobOutcome& outcome, int rank, const std::string& failure) {
  const std::vector<int> ended = normally_ended(outcome);
  const std::string& reason = outcome.ranks.at(static_cast<std::size_t>(rank)).lost_reason;
  if (ended.empty()) return failure + ": " + reason;
  return fmt::format("{}\n  {} ended normally; {} because of that", reason, ranks_text(ended), failure);
}

std::string rank_failure_message(const JobOutcome& outcome, int rank) {
  const JobOutcome::Rank& state = outcome.ranks.at(static_cast<std::size_t>(rank));
  const char* without_end = outcome.report.is_late && rank == outcome.report.rank ? "stalled" : "failed";
  std::string text = fmt::format("rank {} on {} (pid {}) {}", rank, outcome.host_of(rank), state.pid,
                                 outcome.ended_by_itself(rank) ? outcome.how(rank) : without_end);
  if (rank == outcome.report.rank && !outcome.report.reason.empty()) return text + ": " + outcome.report.reason;
  return is_left_behind(outcome, rank) ? left_behind_message(outcome, rank, text) : text;
}

/// "; stopped 3 ranks", or "" when no rank was stopped.
std::string stopped_text(const JobOutcome& outcome, const char* other) {
  const auto stopped = std::count_if(outcome.ranks.begin(), outcome.ranks.end(), [](const JobOutcome::Rank& rank) {
    return rank.state == JobOutcome::RankState::kStopped;
  });
  if (stopped == 0) return "";
  return fmt::format("; stopped {} {}{}", stopped, other, stopped == 1 ? "rank" : "ranks");
}

/// The ranks that failed after the first one; ranks that ended alike are on one line.
std::string other_failures(const JobOutcome& outcome) {
  std::map<std::string, std::vector<int>> by_end;
  for (const int rank : outcome.failed) {
    if (rank != outcome.first_failure.number) by_end[outcome.how(rank)].push_back(rank);
  }
  const bool is_stall = outcome.report.is_late || outcome.first_failure.cause == Cause::kMutualWait;
  const char* why = is_stall ? " because an operation was not completed in time" : " because another rank had left";
  for (const int rank : outcome.victims) by_end[outcome.how(rank) + why].push_back(rank);
  std::string text;
  for (const auto& [end, ranks] : by_end) text += fmt::format("\n  {} {}", ranks_text(ranks), end);
  return text;
}

/// "" for an event that the user caused.
std::string describe(const JobOutcome& outcome, const JobOutcome::Event& event) {
  switch (event.cause) {
    case Cause::kNone:
    case Cause::kInterrupted:
    case Cause::kOutputClosed:
      return "";
    case Cause::kRankFailed:
      return rank_failure_message(outcome, event.number) + stopped_text(outcome, "other ");
    case Cause::kNotStarted:
      return start_failure_message(outcome, event.number);
    case Cause::kNotReached:
      return fmt::format("{}", fmt::join(outcome.unreached_hosts(), "\n"));
    case Cause::kNoNetwork:
      return event.detail;
    case Cause::kNetworkCut:
      return fmt::format("{}: {}{}", outcome.cut_network(), event.detail, stopped_text(outcome, ""));
    case Cause::kHostLost:
      return fmt::format("lost the agent on {}: {}",
                         outcome.allocation.hosts.at(static_cast<std::size_t>(event.number)).name, event.detail);
    case Cause::kMutualWait:
    case Cause::kStoodStill:
    case Cause::kStartTimeout:
    case Cause::kOutputFailed:
      return event.detail;
    case Cause::kCannotGoOn:
      return "the elastic job cannot go on: " + event.detail;
    case Cause::kTimeLimit:
      return fmt::format("the job did not end within the {} of --timeout{}", event.detail, stopped_text(outcome, ""));
  }
  return "";
}

}  // namespace

std::string outcome_message(const JobOutcome& outcome, const StderrLines& stderr_lines) {
  std::string text = describe(outcome, outcome.first_failure);
  if (outcome.first_failure.cause == Cause::kMutualWait) return text + other_failures(outcome);
  if (outcome.first_failure.cause != Cause::kRankFailed) return text;
  std::vector<std::string> lines = stderr_lines(outcome.first_failure.number);
  if (is_left_behind(outcome, outcome.first_failure.number)) lines.clear();  // they repeat the reason
  if (!lines.empty()) text += "\n  the last lines of its stderr:";
  for (const std::string& line : lines) text += "\n    " + line;
  text += other_failures(outcome);
  const std::string ending =
      outcome.ending.cause == outcome.first_failure.cause ? "" : describe(outcome, outcome.ending);
  return ending.empty() ? text : fmt::format("{}\n  then {}", text, ending);
}

std::string remaining_message(const Remaining& remaining, const std::string& host, bool interrupted) {
  constexpr std::size_t kMostNamed = 8, kMostName = 64;  // a line that can still be read
  std::string processes;
  for (std::size_t i = 0; i < std::min(remaining.processes.size(), kMostNamed); ++i) {
    const RemainingProcess& each = remaining.processes[i];
    if (i > 0) processes += ", ";
    const std::string name = one_line(std::string_view(each.name).substr(0, kMostName));
    processes += each.number < 0 ? fmt::format("pid {} ({})", each.pid, name)
                                 : fmt::format("rank {} (pid {}, {})", each.number, each.pid, name);
  }
  if (remaining.processes.size() > kMostNamed)
    processes += fmt::format(" and {} more", remaining.processes.size() - kMostNamed);
  return fmt::format("{}: waiting for {} up to {:.3g} s; Ctrl-C {} kills", host, processes,
                     static_cast<double>(remaining.left_ms) / 1000, interrupted ? "again" : "twice");
}

std::string outcome_json(const JobOutcome& outcome, const JobFacts& job, const StderrLines& stderr_lines) {
  using Json = nlohmann::ordered_json;
  Json ranks = Json::array();
  for (std::size_t i = 0; i < outcome.ranks.size(); ++i) {
    const JobOutcome::Rank& state = outcome.ranks[i];
    const int rank = static_cast<int>(i);
    Json entry = {{"rank", rank}, {"host", outcome.host_of(rank)}, {"outcome", outcome_name(state.state)}};
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
  const bool a_rank =
      outcome.first_failure.cause == Cause::kRankFailed || outcome.first_failure.cause == Cause::kNotStarted;
  Json hosts = Json::array();
  for (const Host& host : outcome.allocation.hosts) hosts.push_back({{"name", host.name}, {"slots", host.slots}});
  Json document = {{"version", 1},
                   {"job_id", job.id},
                   {"command", job.command},
                   {"start", utc_time(job.start)},
                   {"end", utc_time(job.end)},
                   {"hosts", std::move(hosts)},
                   {"exit_status", outcome.exit_status()},
                   {"cause", cause_name(outcome.first_failure.cause)},
                   {"first_failed_rank", a_rank ? Json(outcome.first_failure.number) : Json(nullptr)},
                   {"failed_ranks", outcome.failed},
                   {"message", outcome_message(outcome, stderr_lines)},
                   {"ranks", std::move(ranks)}};
  for (const GenerationRecord& each : outcome.generations) {
    document["generations"].push_back({{"number", each.number},
                                       {"size", each.size},
                                       {"cause", each.cause},
                                       {"left", each.left},
                                       {"came", each.came},
                                       {"stood_still_seconds", each.stood_still_seconds},
                                       {"steps_redone", each.steps_redone ? Json(*each.steps_redone) : Json(nullptr)},
                                       {"processes", each.processes}});
  }
  return ordered_json_text(document, 2) + "\n";
}

}  // namespace runjob
