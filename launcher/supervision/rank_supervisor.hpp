#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "hostfile/allocation.hpp"
#include "launcher/channel/alarm.hpp"
#include "launcher/channel/messages.hpp"
#include "launcher/supervision/verdict.hpp"
#include "rendezvous/server/service.hpp"

namespace runjob {

/// Supervises the ranks of one job, whoever starts them: turns their events into a verdict, answers their requests to
/// the rendezvous, and decides when the job has to end. It watches three times:
///
///   rendezvous   the waits of requests end when their time has passed;
///   start        from the first call of init() to the last one, at most Options::start_timeout;
///   culprit      after a failure, the rank that failed first gets kCulpritPatience to end with a status of its own.
///
/// Owner    the job. The ranks' processes belong to the owner, which reports their events and ends them.
/// Threads  one, which also runs the alarm.
/// Errors   none of its own; those of a malformed request are its reply.
class RankSupervisor {
 public:
  struct Options {
    std::string command;  ///< for messages
    std::chrono::milliseconds start_timeout{};
    bool continue_on_failure = false;  ///< a rank that fails does not end the job
    /// Answers the joins among the requests. Without it, joined() reports them, because agents have answered them.
    rendezvous::Service::Placement placement;
  };

  /// Called at most once, when the verdict requires that the job ends before all ranks have.
  using EndRanksBecause = std::function<void(const Verdict& verdict)>;

  static constexpr std::chrono::seconds kCulpritPatience{4};

  /// `allocation` outlives this object.
  RankSupervisor(const Allocation& allocation, Options options, std::unique_ptr<Alarm> alarm,
                 EndRanksBecause end_ranks);

  void started(int rank, const Started& process);
  void not_started(int rank, const StartFailed& failure);
  void exited(int rank, const Exited& process);
  /// Returns true for the first join of the job.
  bool joined(int rank);
  void request(rendezvous::Request request, rendezvous::Reply reply);
  /// All ranks of `host` are lost with it.
  void host_lost(int host, const std::string& how);

  /// Makes the callback if the events so far require it. The owner calls it after each batch of events, so that all
  /// failures of a batch are known before the ranks are ended. The supervisor calls it itself when a time has passed.
  void end_if_caused();

  /// The owner ends the ranks for a reason of its own: the callback is not made any more, and only the rendezvous is
  /// watched.
  void ranks_are_ending();

  const Verdict& verdict() const { return verdict_; }
  /// For causes that are not events of a rank. Call end_if_caused() afterwards.
  Verdict& verdict() { return verdict_; }

 private:
  /// How far the ranks are. Only moves forward.
  enum class Phase {
    kStarting,  // no rank has called init()
    kJoining,   // some rank has called init(); the others must follow in time
    kEnding,    // the callback that ends the ranks was made
  };

  bool note_join(int rank);
  void check_start();
  void watch_culprit();
  void watch_times();
  void on_alarm();
  std::int64_t milliseconds_since_start() const;

  const Allocation& allocation_;
  const Options options_;
  const std::unique_ptr<Alarm> alarm_;
  const EndRanksBecause end_ranks_because_;
  const Alarm::TimePoint began_;
  Verdict verdict_;
  rendezvous::Service service_;
  Phase phase_ = Phase::kStarting;
  Alarm::TimePoint start_deadline_ = Alarm::TimePoint::max();
  Alarm::TimePoint culprit_deadline_ = Alarm::TimePoint::max();
  Alarm::TimePoint alarm_time_ = Alarm::TimePoint::max();  // the time that the alarm is set to
};

}  // namespace runjob
