#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "runtime/collectives/operation.hpp"
#include "runtime/negotiation/members.hpp"

namespace runjob::runtime {

/// The time after which an operation that some ranks have submitted and others have not is reported.
struct StallLimits {
  std::chrono::milliseconds warning{60000};  ///< 0: never
  std::chrono::milliseconds failure{0};      ///< the job ends after this time; 0: never
};

/// An operation that waits for ranks.
struct WaitingOperation {
  std::uint64_t serial = 0;  ///< differs for each operation, also of the same name
  std::string name;
  Kind kind = Kind::kAllreduce;
  std::vector<int> missing;  ///< ranks that have not submitted it
};

/// Finds the operations that wait for too long, from repeated lists of the operations that wait. No clock of its own,
/// no threads.
class StallInspector {
 public:
  using Clock = std::chrono::steady_clock;

  StallInspector(const StallLimits& limits, Members members);

  /// The time of the next inspection after `now`: a quarter of the shorter limit later; nullopt without limits.
  std::optional<Clock::time_point> next(Clock::time_point now) const;

  struct Report {
    std::vector<std::string> warnings;  ///< each once per `warning` time and operation
    Status failure;                     ///< the reason why the job is to end; OK for none
    int late = -1;                      ///< with a failure: the first rank that it waited for, by its rank in the job
  };
  /// `waiting`: all operations that wait now. `last`: by rank, the name of the operation that it submitted last; empty
  /// for none.
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
