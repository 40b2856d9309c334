#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/channel/alarm.hpp"
#include "launcher/channel/messages.hpp"
#include "launcher/supervision/supervisor.hpp"
#include "launcher/supervision/verdict.hpp"
#include "rendezvous/server/service.hpp"

namespace runjob {

/// Supervises the ranks of a job of fixed size, or of one generation, whoever starts them. It watches three times:
///
///   rendezvous   the waits of requests end when their time has passed;
///   start        from the first call of init() to the last one, at most Options::start_timeout;
///   culprit      after a failure, the rank that failed first gets kCulpritPatience to end with a status of its own.
///
/// Threads  one, which also runs the alarm.
class RankSupervisor : public Supervisor {
 public:
  struct Options {
    std::string command;  ///< for messages
    std::chrono::milliseconds start_timeout{};
    bool continue_on_failure = false;  ///< a rank that fails does not end the job
    /// Answers the joins among the requests. Without it, joined() reports them, because agents have answered them.
    rendezvous::Service::Placement placement;
    std::vector<GenerationRecord> generations = {};  ///< of an elastic job, for its outcome
  };

  static constexpr std::chrono::seconds kCulpritPatience{4};

  /// `allocation` outlives this object.
  RankSupervisor(const Allocation& allocation, Options options, std::unique_ptr<Alarm> alarm,
                 EndRanksBecause end_ranks);

  void started(int rank, const Started& process) override;
  void not_started(int rank, const StartFailed& failure) override;
  void exited(int rank, const Exited& process) override;
  bool joined(int rank) override;
  void request(rendezvous::Request request, rendezvous::Reply reply) override;
  void host_lost(int host, const std::string& how) override;
  void end_if_caused() override;
  void ranks_are_ending() override;
  const Verdict& verdict() const override { return verdict_; }
  Verdict& verdict() override { return verdict_; }
  int host_of(int rank) const override;

  /// Ends every wait at the rendezvous with 410 and refuses what comes later.
  void close_rendezvous(const std::string& reason) { service_.close(reason); }

 private:
  /// How far the ranks are. Only moves forward.
  enum class Phase {
    kStarting,  // no rank has called init()
    kJoining,   // some rank has called init(); the others must follow in time
    kEnding,    // the callback that ends the ranks was made
  };

  bool note_join(int rank);
  void check_start(bool time_is_up = false);
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
