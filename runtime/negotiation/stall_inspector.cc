#include "runtime/negotiation/stall_inspector.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace runjob::runtime {
namespace {

constexpr std::size_t kMostRanksNamed = 8;  // a line that can still be read
constexpr const char* kLimitText =
    "; --stall-check-shutdown-time-seconds (RUNJOB_STALL_SHUTDOWN_TIME_SECONDS) allows no more";

}  // namespace

StallInspector::StallInspector(const StallLimits& limits, Members members)
    : limits_(limits), members_(std::move(members)) {}

std::optional<StallInspector::Clock::time_point> StallInspector::next(Clock::time_point now) const {
  auto shortest = limits_.warning;
  if (limits_.failure.count() != 0 && (shortest.count() == 0 || limits_.failure < shortest)) shortest = limits_.failure;
  if (shortest.count() == 0) return std::nullopt;
  return now + std::max(shortest / 4, std::chrono::milliseconds(1));
}

StallInspector::Report StallInspector::inspect(Clock::time_point now, const std::vector<WaitingOperation>& waiting,
                                               const std::vector<std::string>& last) {
  Report report;
  std::map<std::uint64_t, Seen> still;
  for (const WaitingOperation& operation : waiting) {
    const auto found = seen_.find(operation.serial);
    Seen seen = found == seen_.end() ? Seen{now, now} : found->second;
    const auto time = now - seen.since;
    if (limits_.failure.count() != 0 && time >= limits_.failure && report.failure.ok()) {
      report.failure = Status(Errc::kTimeout, describe(operation, time, last) + kLimitText);
      if (!operation.missing.empty()) report.late = members_.rank(operation.missing.front());
    } else if (limits_.warning.count() != 0 && now - seen.warned >= limits_.warning) {
      report.warnings.push_back(describe(operation, time, last));
      seen.warned = now;
    }
    still.emplace(operation.serial, seen);
  }
  seen_ = std::move(still);
  return report;
}

/// "allreduce 'x' has waited 61 s for rank 1 on b (last submitted 'w'), rank 2 on b (has submitted nothing)".
std::string StallInspector::describe(const WaitingOperation& operation, std::chrono::nanoseconds time,
                                     const std::vector<std::string>& last) const {
  std::string ranks;
  for (std::size_t i = 0; i < std::min(operation.missing.size(), kMostRanksNamed); ++i) {
    const int rank = operation.missing[i];
    const std::string& name = last[static_cast<std::size_t>(rank)];
    const std::string deed = name.empty() ? "has submitted nothing" : "last submitted " + name_text(name);
    ranks += fmt::format("{}{} ({})", ranks.empty() ? "" : ", ", rank_text(rank, members_), deed);
  }
  if (operation.missing.size() > kMostRanksNamed) {
    ranks += fmt::format(" and {} more", operation.missing.size() - kMostRanksNamed);
  }
  return fmt::format("{} has waited {:.3g} s for {}",
                     operation_text(operation.name, operation.kind, members_.process_set()),
                     std::chrono::duration<double>(time).count(), ranks);
}

}  // namespace runjob::runtime
