#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/in_flight.hpp"
#include "runtime/engine/phase.hpp"
#include "runtime/engine/submission_window.hpp"
#include "runtime/negotiation/control_message.hpp"
#include "runtime/negotiation/plan_follower.hpp"
#include "runtime/negotiation/unnamed_submissions.hpp"
#include "runtime/operations/handle_table.hpp"

namespace runjob::runtime {

/// Rounds and collectives are run by one thread at a time, the driver: the thread "runjob-driver", or a caller that
/// waits.
enum class DriverRole {
  kVacant,   ///< no thread is the driver
  kDriving,  ///< one is
  kAsleep,   ///< one is, and sleeps until there is a reason for a round
  kClosed,   ///< there is no driver, before the backend is connected and after the rounds have failed
};

/// The work of a rank: its operations in flight, the requests that are not announced yet, and the role of the driver.
/// Threads  one at a time: the engine guards it with the mutex of its EngineState.
class WorkQueue {
 public:
  using Clock = std::chrono::steady_clock;

  /// As SubmissionWindow.
  WorkQueue(std::chrono::microseconds cycle_time, std::size_t enough_bytes) : window(cycle_time, enough_bytes) {}

  InFlight operations;
  UnnamedSubmissions unnamed;
  SubmissionWindow window;                 ///< decides how long requests wait for more
  std::vector<const Completion*> awaited;  ///< by threads that do not drive
  std::optional<PlanFollower::Hold> hold;  ///< the driver holds requests back for a bucket
  struct AtOnce {
    std::string_view name;
    Kind kind;
  };
  std::optional<AtOnce> at_once;  ///< an operation in flight that is not in `operations`

  /// The request of an operation, to be announced. `begins`: see Request.
  void add(const std::string& name, const Signature& signature, bool begins);
  std::size_t requests() const { return requests_.size(); }
  /// The requests that are to be announced now.
  std::list<Request> take_requests();
  bool is_in_flight(const std::string& name) const {
    return (at_once && at_once->name == name) || operations.contains(name);
  }

  /// True while a thread waits for an operation in flight. A thread that waits for a finished one is about to notice.
  bool is_awaited() const;
  /// True while there is nothing to do before a bucket is complete or due. `is_stopping`: this rank has called
  /// shutdown().
  bool awaits_bucket(bool is_stopping) const;
  /// True while a driver is needed.
  bool has_work(const PhaseRecord& phase, bool is_stopping) const {
    return !operations.empty() && !phase.is_ended() && role_ != DriverRole::kClosed && !awaits_bucket(is_stopping);
  }

  DriverRole role() const { return role_; }
  bool has_driver() const { return role_ == DriverRole::kDriving || role_ == DriverRole::kAsleep; }
  /// Makes the calling thread the driver; false when it cannot be.
  bool take_role(const PhaseRecord& phase);
  void open_role() { role_ = DriverRole::kVacant; }
  void leave_role() { role_ = role_ == DriverRole::kClosed ? role_ : DriverRole::kVacant; }
  /// The driver's alone.
  void set_asleep(bool is_asleep) { role_ = is_asleep ? DriverRole::kAsleep : DriverRole::kDriving; }
  void close_role() { role_ = DriverRole::kClosed; }

 private:
  std::list<Request> requests_;
  DriverRole role_ = DriverRole::kClosed;
};

}  // namespace runjob::runtime
