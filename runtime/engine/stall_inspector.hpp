#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "runtime/collectives/operation.hpp"
#include "runtime/engine/members.hpp"

namespace runjob::runtime {

/// When operations that some ranks have submitted and others have not are spoken of.
struct StallLimits {
  std::chrono::milliseconds warning{60000};  ///< 0: never
  std::chrono::milliseconds failure{0};      ///< then the job ends; 0: never
};

/// An operation that waits for ranks.
struct WaitingOperation {
  std::uint64_t serial = 0;  ///< another one for each operation, also of the same name
  std::string name;
  Kind kind = Kind::kAllreduce;
  std::vector<int> missing;  ///< ranks that have not submitted it
};

/// Finds out which operations wait for too long, as it is told again and again which ones wait. No clock of its own, no threads.
class StallInspector {
 public:
  using Clock = std::chrono::steady_clock;

  StallInspector(const StallLimits& limits, Members members);

  /// When to inspect next after `now`: a quarter of the shorter limit later; nullopt when there is none.
  std::optional<Clock::time_point> next(Clock::time_point now) const;

  struct Report {
    std::vector<std::string> warnings;  ///< each once per `warning` time and operation
    Status failure;                     ///< not ok: the job is to end
  };
  /// `waiting`: all that wait now. `last`: by rank, the name of what it submitted last; empty for nothing.
  Report inspect(Clock::time_point now, const std::vector<WaitingOperation>& waiting,
                 const std::vector<std::string>& last);

 private:
  struct Seen {
    Clock::time_point since, warned;
  };

  std::string describe(const WaitingOperation& operation, std::chrono::nanoseconds time,
                       const std::vector<std::string>& last) const;

  const StallLimits limits_;
  const Members members_;
  std::map<std::uint64_t, Seen> seen_;
};

}  // namespace runjob::runtime
