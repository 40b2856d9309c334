#include "launcher/supervision/verdict.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string.h>
#include <sys/wait.h>
#include <utility>

#include <fmt/format.h>

namespace runjob {

namespace {

using RankState = JobOutcome::RankState;

/// True if a rank is still running that may have failed before the ranks that have ended.
bool culprit_may_come(const JobOutcome& outcome) {
  if (outcome.report.rank >= 0) return outcome.running(outcome.report.rank);
  return std::any_of(outcome.ranks.begin(), outcome.ranks.end(), [](const JobOutcome::Rank& rank) {
    return rank.state == RankState::kRunning && !rank.lost_another;
  });
}

/// Two ranks whose hosts do not reach each other, if that explains the reports: a rank that another one has lost runs,
/// or has ended only because it has lost others. A pair that both sides report comes first.
std::optional<std::pair<int, int>> cut_network(const JobOutcome& outcome) {
  const auto& lost = outcome.lost_connections;
  const auto explains = [&](const std::pair<int, int>& pair) {
    const RankState state = outcome.ranks.at(static_cast<std::size_t>(pair.second)).state;
    return state == RankState::kRunning || state == RankState::kVictim;
  };
  const auto is_mutual = [&](const std::pair<int, int>& pair) {
    return explains(pair) && std::any_of(lost.begin(), lost.end(), [&](const std::pair<int, int>& other) {
             return outcome.host_of(other.first) == outcome.host_of(pair.second) &&
                    outcome.host_of(other.second) == outcome.host_of(pair.first);
           });
  };
  auto found = std::find_if(lost.begin(), lost.end(), is_mutual);
  if (found == lost.end()) found = std::find_if(lost.begin(), lost.end(), explains);
  if (found == lost.end()) return std::nullopt;
  return *found;
}

}  // namespace

Verdict::Verdict(const Allocation& allocation, std::string command, bool continue_on_failure,
                 std::vector<GenerationRecord> generations)
    : continue_on_failure_(continue_on_failure) {
  outcome_.generations = std::move(generations);
  outcome_.allocation = allocation;
  outcome_.command = std::move(command);
  outcome_.ranks.resize(allocation.placements.size());
}

void Verdict::rank_started(int rank, std::int64_t pid) {
  at(rank).state = State::kRunning;
  at(rank).pid = pid;
}

void Verdict::rank_not_started(int rank, const StartFailed& failure) {
  at(rank).start_failed = failure;
  note({Cause::kNotStarted, rank, {}});
}

void Verdict::rank_exited(int rank, const Exited& exited) {
  JobOutcome::Rank& state = at(rank);
  state.exited = exited;
  const bool clean = WIFEXITED(exited.wait_status) && WEXITSTATUS(exited.wait_status) == 0;
  if (outcome_.first_failure.cause == Cause::kRankFailed && outcome_.first_failure.number == rank) {
    state.state = State::kFailed;  // it was named before it ended
  } else if (clean) {
    state.state = State::kOk;
  } else if (!outcome_.mutual_wait.empty() && (!ends_job() || cause() == Cause::kMutualWait)) {
    state.state = State::kVictim;  // also one that is stopped because it needs long to end: in every run the same
    outcome_.victims.push_back(rank);
  } else if (exited.stopped_by_us || ends_job()) {
    state.state = State::kStopped;
  } else if (state.lost_another || (outcome_.report.is_late && rank != outcome_.report.rank)) {
    state.state = State::kVictim;
    outcome_.victims.push_back(rank);
  } else {
    state.state = State::kFailed;
    outcome_.failed.push_back(rank);
    if (outcome_.report.rank < 0 || outcome_.report.rank == rank || !outcome_.running(outcome_.report.rank))
      note_failure(rank);
  }
  // A rank that the others have waited too long for is not on its way out, so that its end is not awaited.
  const bool has_lost_patience = outcome_.report.is_late && !outcome_.victims.empty();
  if (unsettled() && (has_lost_patience || !culprit_may_come(outcome_))) settle();
}

void Verdict::rank_joined(int rank) {
  at(rank).lost_another = false;
  at(rank).lost_reason.clear();
  if (outcome_.report.rank == rank) outcome_.report = {};
  outcome_.mutual_wait.clear();
}

void Verdict::rank_failing(int rank, bool own, const std::string& reason, int lost) {
  const bool has_lost = lost >= 0 && static_cast<std::size_t>(lost) < outcome_.ranks.size();
  if (has_lost && outcome_.host_of(rank) != outcome_.host_of(lost)) note_lost_connection({rank, lost});
  if (!outcome_.running(rank) || !outcome_.mutual_wait.empty()) return;
  if (!own) {
    at(rank).lost_another = outcome_.report.rank != rank;
    if (at(rank).lost_reason.empty()) at(rank).lost_reason = reason;
  } else if (!at(rank).lost_another && outcome_.report.rank < 0) {
    outcome_.report = {rank, reason};
  }
}

/// A rank may report one again and again.
void Verdict::note_lost_connection(std::pair<int, int> ranks) {
  auto& lost = outcome_.lost_connections;
  if (std::find(lost.begin(), lost.end(), ranks) == lost.end()) lost.push_back(ranks);
}

void Verdict::rank_late(int late, const std::string& reason) {
  const bool is_rank = late >= 0 && static_cast<std::size_t>(late) < outcome_.ranks.size();
  if (!is_rank || !outcome_.running(late) || outcome_.report.rank >= 0) return;
  outcome_.report = {late, reason, /*is_late=*/true};
}

void Verdict::mutual_wait(const std::string& reason) {
  if (outcome_.mutual_wait.empty() && outcome_.report.rank < 0) outcome_.mutual_wait = reason;
}

bool Verdict::unsettled() const {
  if (outcome_.first_failure.cause != Cause::kNone) return false;
  return (outcome_.report.rank >= 0 && outcome_.running(outcome_.report.rank)) || !outcome_.failed.empty() ||
         !outcome_.victims.empty() || !outcome_.lost_connections.empty();
}

void Verdict::settle() {
  if (!unsettled()) return;
  if (outcome_.report.rank >= 0 && outcome_.running(outcome_.report.rank)) {
    outcome_.failed.push_back(outcome_.report.rank);
    return note_failure(outcome_.report.rank);
  }
  if (!outcome_.mutual_wait.empty() && !outcome_.victims.empty())
    return note({Cause::kMutualWait, -1, outcome_.mutual_wait}, !continue_on_failure_);
  if (const auto cut = cut_network(outcome_); cut && outcome_.failed.empty()) {
    outcome_.cut = std::minmax(cut->first, cut->second);
    return note({Cause::kNetworkCut, cut->first, at(cut->first).lost_reason});
  }
  if (outcome_.failed.empty() && outcome_.victims.empty()) return;  // only reports, about a rank that ended well
  if (outcome_.failed.empty()) {                                    // the one that they lost did not fail
    outcome_.failed.push_back(outcome_.victims.front());
    outcome_.victims.erase(outcome_.victims.begin());
    at(outcome_.failed.front()).state = State::kFailed;
  }
  note_failure(outcome_.failed.front());
}

void Verdict::note_failure(int rank) {
  note({Cause::kRankFailed, rank, {}}, !continue_on_failure_);
}

void Verdict::host_lost(int host, const std::string& how, Cause cause) {
  for (const Placement& placement : outcome_.allocation.placements) {
    if (placement.host == host && outcome_.running(placement.rank)) at(placement.rank).state = State::kLost;
  }
  note({cause, host, how});
}

void Verdict::host_not_reached(int host, const std::string& why) {
  const std::string& name = outcome_.allocation.hosts.at(static_cast<std::size_t>(host)).name;
  outcome_.unreached[host] = why.starts_with(name + ": ") ? why : fmt::format("{}: {}", name, why);
  note({Cause::kNotReached, host, {}});
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

void Verdict::output_failed(int error) {
  if (error == EPIPE) return note({Cause::kOutputClosed, -1, {}});
  note({Cause::kOutputFailed, -1, fmt::format("cannot write to standard output: {}", ::strerror(error))});
}

void Verdict::cannot_go_on(const std::string& why) {
  outcome_.first_failure = outcome_.ending = {Cause::kCannotGoOn, -1, why};
}

void Verdict::note(JobOutcome::Event event, bool ends_job) {
  if (ends_job && outcome_.ending.cause == Cause::kNone) outcome_.ending = event;
  if (outcome_.first_failure.cause == Cause::kNone) outcome_.first_failure = std::move(event);
}

std::vector<int> Verdict::running_ranks() const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < outcome_.ranks.size(); ++i) {
    if (outcome_.ranks[i].state == State::kRunning) ranks.push_back(static_cast<int>(i));
  }
  return ranks;
}

}  // namespace runjob
