#pragma once

#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/engine/engine_state.hpp"
#include "runtime/engine/execution.hpp"

namespace runjob::runtime {

/// The thread "runjob-engine", which follows the life of the job: it reports this rank's failures and its goodbye to
/// the coordinator, applies the coordinator's decisions, and sends the timeline's records. It sleeps in poll() until
/// there is an event, and ends when this rank may leave. While a job is being left it also looks at the devices, which
/// notify nobody.
///
/// Leaving  A rank may leave when no rank and no device runs anything, at the latest after kFarewell. By then all that
///          it has submitted on devices is done, as a rule: it has given the other ranks its part, and their operations
///          end by themselves, however late they begin. Otherwise theirs may never end, so that it ends the job as a
///          failure does. While another host has not acknowledged its last bytes, it stays for up to kMostForNetwork
///          more: without them the operations of the ranks there would fail.
/// Owner    the state and the execution are lent.
/// Threads  start() and join() one at a time; on_failure() and on_asked() any.
class Watcher {
 public:
  using Clock = EngineState::Clock;
  /// Leaves room, within the second that shutdown() may take while the network works, for ending the backend.
  static constexpr std::chrono::milliseconds kFarewell{800};
  /// A host that acknowledges nothing for so long counts as out of reach: SilenceWatch.
  static constexpr std::chrono::seconds kMostForNetwork{5};

  /// The time within which the ranks have to agree on the end of a process set.
  static constexpr std::chrono::seconds kGiveUpLimit{2};

  Watcher(EngineState& state, Execution& execution);
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  void start();
  /// Waits until this rank, which has called shutdown(), may leave.
  void join();
  bool is_running() const { return thread_.joinable(); }

  /// `announce` submits the barrier after which a process set that was given up ends, and returns its completion; null
  /// when that is no use any more. Called on the watcher's thread; to be set before start().
  void on_given_up(std::function<std::shared_ptr<Completion>(int process_set)> announce);
  /// See Engine::on_failure().
  void on_failure(std::function<bool(const Status&)> notify);
  /// See Engine::on_asked().
  void on_asked(std::function<std::vector<Wait>()> waits);
  /// See Engine::on_visitors().
  void on_visitors(int listener, std::function<void()> notify);

 private:
  void run();
  bool may_end(Clock::time_point now);
  void watch_visitors(std::vector<pollfd>& descriptors);
  void take_visitors(std::vector<pollfd>& descriptors);
  bool has_unacknowledged() const REQUIRES(state_.mutex);
  void send_reports();
  void send_records(bool is_last);
  bool has_drained() const REQUIRES(state_.mutex);
  std::optional<Clock::time_point> next_look();
  void report_cut_off();
  bool apply(const LifeDecision& decision);
  void report_lost_connection(const LifeDecision& decision) const;
  void report_stall(const LifeDecision& decision) const;
  void answer_waits();
  bool end_set(const LifeDecision& decision);
  void await_end_of_set(int process_set);
  std::optional<Clock::time_point> check_ends_of_sets(Clock::time_point now);
  void on_failed(const Status& why);
  Status take_outside_end();
  void abort(const Status& why);

  EngineState& state_;
  Execution& execution_;
  const bool carries_records_;           ///< of the timeline, to rank 0
  std::vector<LifeDecision> decisions_;  ///< not yet applied
  bool is_goodbye_sent_ = false, is_drained_sent_ = false;
  bool is_being_left_ = false;  ///< a rank has sent a goodbye
  bool is_over_ = false;        ///< the end of the job was decided, so that no rank waits for this one
  std::optional<Clock::time_point> farewell_due_;
  std::optional<Clock::time_point> cause_due_;  ///< a failure waits until then for its cause
  /// A process set that was given up, until it has ended.
  struct EndOfSet {
    std::shared_ptr<Completion> barrier;  ///< null until all ranks are notified
    Clock::time_point due;                ///< the engine ends when the set has not
  };
  std::map<int, EndOfSet> ends_of_sets_;
  std::function<std::shared_ptr<Completion>(int)> announce_end_of_set_;
  struct Visitors {
    int listener = -1;
    std::function<void()> notify;
  };
  Visitors visitors_ GUARDED_BY(state_.mutex);
  bool watches_visitors_ = false;                    ///< their listener is the last one of the descriptors
  std::optional<Clock::time_point> visitors_again_;  ///< the listener is not looked at before
  std::function<bool(const Status&)> notify_ GUARDED_BY(state_.mutex);
  std::function<std::vector<Wait>()> waits_of_sets_ GUARDED_BY(state_.mutex);
  Status failure_ GUARDED_BY(state_.mutex);  ///< that has ended the job
  std::thread thread_;
};

}  // namespace runjob::runtime
