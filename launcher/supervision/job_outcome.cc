#include "launcher/supervision/job_outcome.hpp"

#include <csignal>
#include <string.h>
#include <sys/wait.h>

#include <fmt/format.h>

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

std::string JobOutcome::how(int rank) const {
  const Rank& state = ranks.at(static_cast<std::size_t>(rank));
  if (!state.exited) return "";
  const int status = state.exited->wait_status;
  if (WIFEXITED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  std::string text = fmt::format("was killed by signal {} ({})", WTERMSIG(status), signal_name(WTERMSIG(status)));
  if (state.exited->out_of_memory) text += ", probably by the kernel's out-of-memory killer";
  return text;
}

const std::string& JobOutcome::host_of(int rank) const {
  const int host = allocation.placements.at(static_cast<std::size_t>(rank)).host;
  return allocation.hosts.at(static_cast<std::size_t>(host)).name;
}

int JobOutcome::exit_status() const {
  switch (first.cause) {
    case Cause::kNone:
      return 0;
    case Cause::kRankFailed: {
      if (!ended_by_itself(first.culprit)) return 1;  // as an uncaught exception gives
      const int status = ranks.at(static_cast<std::size_t>(first.culprit)).exited->wait_status;
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    case Cause::kNotStarted: {
      const StartFailed& failure = *ranks.at(static_cast<std::size_t>(first.culprit)).start_failed;
      if (failure.step != StartFailed::Step::kExec) return 125;
      return failure.is_not_found() ? 127 : 126;
    }
    case Cause::kNoNetwork:
      return first.culprit;
    case Cause::kNotReached:
    case Cause::kHostLost:
    case Cause::kStartTimeout:
      return 125;
    case Cause::kTimeLimit:
      return 124;  // as timeout(1)
    case Cause::kInterrupted:
      return 128 + first.culprit;
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
