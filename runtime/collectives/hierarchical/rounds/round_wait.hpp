#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/process/time_limit.hpp"
#include "runtime/collectives/hierarchical/rounds/attendance.hpp"
#include "runtime/collectives/hierarchical/rounds/leader_exchange.hpp"
#include "runtime/collectives/rounds.hpp"

namespace runjob::runtime {

/// The times of a rank that waits in a round: when it asks the other hosts which ranks have given their messages, and
/// when a rank that must take part is late. No rank is late as long as one still moves bytes of an operation before:
/// over a slow link this may take much longer than the time limit. This class does not wait itself. The caller waits
/// until next_look() at most, and then calls is_over().
///
/// Owner    all are lent, and outlive it.
/// Threads  one at a time.
class RoundWait {
 public:
  using Clock = Rounds::Clock;

  /// `exchange`: null for a rank that is not the leader, which asks no other host. `timeout`: a rank that must take
  /// part is late when this rank has waited for so long since the last move of bytes.
  RoundWait(const Attendance& attendance, LeaderExchange* exchange, std::chrono::milliseconds timeout)
      : attendance_(attendance), exchange_(exchange), timeout_(timeout) {}

  /// A round begins, in which this rank does not wait yet.
  void begin(std::uint64_t round);
  /// The time at which is_over() has something to do, even if no message arrives before. The first call in a round
  /// begins the wait.
  Clock::time_point next_look(Rounds::Deadline deadline, const Rounds::IsBusy& is_busy);
  /// True when the deadline has passed. On a leader it also asks the other hosts, each time that 200 ms have passed.
  /// Errors  Error(kTimeout) that names a rank which is late.
  bool is_over(Rounds::Deadline deadline, const Rounds::IsBusy& is_busy);

 private:
  void begin_limit(Clock::time_point now);

  const Attendance& attendance_;
  LeaderExchange* const exchange_;
  const std::chrono::milliseconds timeout_;
  std::uint64_t round_ = 0;
  std::optional<TimeLimit> limit_;  ///< once this rank waits
  std::uint64_t moves_ = 0;         ///< when the limit began
  Clock::time_point next_question_;
};

}  // namespace runjob::runtime
