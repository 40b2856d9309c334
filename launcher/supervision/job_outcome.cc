#include "launcher/supervision/job_outcome.hpp"

#include <algorithm>
#include <csignal>
#include <string.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include "launcher/processes/child_process.hpp"

namespace runjob {
namespace {

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

}  // namespace

bool JobOutcome::ended_by_itself(int rank) const {
  const std::optional<Exited>& exited = ranks.at(static_cast<std::size_t>(rank)).exited;
  return exited && !exited->stopped_by_us && exited->wait_status != 0;
}

std::string end_text(const Exited& end) {
  const int status = end.wait_status;
  if (WIFEXITED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  std::string text = fmt::format("was killed by signal {} ({})", WTERMSIG(status), signal_name(WTERMSIG(status)));
  if (end.out_of_memory) text += ", probably by the kernel's out-of-memory killer";
  return text;
}

std::string end_text(const StartFailed& failure) {
  return "could not be started: " + (failure.text.empty() ? start_error_text(failure.error_number) : failure.text);
}

std::string JobOutcome::how(int rank) const {
  const std::optional<Exited>& exited = ranks.at(static_cast<std::size_t>(rank)).exited;
  return exited ? end_text(*exited) : "";
}

const std::string& JobOutcome::host_of(int rank) const {
  const int host = allocation.placements.at(static_cast<std::size_t>(rank)).host;
  return allocation.hosts.at(static_cast<std::size_t>(host)).name;
}

std::string JobOutcome::cut_network() const {
  const auto interface_of = [this](int rank) {
    const auto host = static_cast<std::size_t>(allocation.placements.at(static_cast<std::size_t>(rank)).host);
    return host < interfaces.size() ? interfaces[host] : std::string();
  };
  const std::string ours = interface_of(cut.first), theirs = interface_of(cut.second);
  std::string over = ours == theirs || theirs.empty() ? ours : fmt::format("{} and {}", ours, theirs);
  if (!over.empty()) over = " over " + over;
  return fmt::format("{} and {} do not reach each other{}", host_of(cut.first), host_of(cut.second), over);
}

/// The exit status that the rank gives the job.
int JobOutcome::status_of(int rank) const {
  if (!ended_by_itself(rank)) return 1;  // as an uncaught exception gives
  const int status = ranks.at(static_cast<std::size_t>(rank)).exited->wait_status;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int JobOutcome::exit_status() const {
  switch (first_failure.cause) {
    case Cause::kNone:
      return 0;
    case Cause::kRankFailed:
      return status_of(first_failure.number);
    case Cause::kMutualWait: {  // that of the lowest rank, whichever ended first
      const auto found = std::min_element(victims.begin(), victims.end(), [this](int a, int b) {
        return std::pair(!ended_by_itself(a), a) < std::pair(!ended_by_itself(b), b);
      });
      return found == victims.end() ? 1 : status_of(*found);
    }
    case Cause::kNotStarted: {
      const StartFailed& failure = *ranks.at(static_cast<std::size_t>(first_failure.number)).start_failed;
      if (failure.step != StartFailed::Step::kExec) return 125;
      return failure.is_not_found() ? 127 : 126;
    }
    case Cause::kNoNetwork:
      return first_failure.number;
    case Cause::kNotReached:
    case Cause::kNetworkCut:
    case Cause::kHostLost:
    case Cause::kStoodStill:
    case Cause::kStartTimeout:
    case Cause::kCannotGoOn:
    case Cause::kOutputFailed:
      return 125;
    case Cause::kTimeLimit:
      return 124;  // as timeout(1)
    case Cause::kInterrupted:
      return 128 + first_failure.number;
    case Cause::kOutputClosed:
      return 128 + SIGPIPE;
  }
  return 125;
}

std::vector<std::string> JobOutcome::unreached_hosts() const {
  std::vector<std::string> lines;
  for (const auto& [host, line] : unreached) lines.push_back(line);
  return lines;
}

}  // namespace runjob
