#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/elastic/exclusions.hpp"
#include "launcher/elastic/process_roll.hpp"
#include "launcher/job_spec/elastic_settings.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob {

/// Decides who belongs to an elastic job: which processes form a generation, when a new one is needed, which processes
/// are started in place of lost ones, and when the job cannot go on.
///
/// A process has a number that never changes. It enters elastic.run(), is ready when it waits for the next generation,
/// and is a member while it has a rank in the present one. A generation ends when a member is lost, when a member asks
/// for the next one, or at the members' next commit after the hosts have changed. The members that are left meet; when
/// all of them are ready, and at least ElasticSettings::min_ranks with the newcomers that are ready too, they are the
/// next generation. A newcomer never delays them.
///
/// Until the first process has entered elastic.run(), the job is a static one: see absorbs().
///
/// Pure     no clock, no sockets, no processes. The present time comes with each call, and the owner calls expire() at
///          next_deadline().
/// Threads  one. An action must not call back.
class Membership {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Member {
    int process = 0;
    int host = 0;
    int local_rank = 0;
    std::int64_t commit = -1;
  };
  struct Generation {
    int number = 0;
    std::vector<Member> members;  ///< by rank
    std::string told;             ///< for people: "7 ranks after 0.21 s: rank 5 on s2 was killed by signal 9"
  };
  /// A process to start, and the place that it will probably get.
  struct Start {
    int process = 0;
    int host = 0;
    int local_rank = 0;
    int rank = 0;
    int size = 1;
  };
  /// How a process ended.
  struct End {
    bool clean = false;  ///< with status 0
    std::string how;     ///< "was killed by signal 9 (SIGKILL)"
  };

  /// The owner's side.
  class Actions {
   public:
    virtual ~Actions() = default;
    virtual void start(const Start& start) = 0;
    virtual void form(const Generation& generation) = 0;
    virtual void notify(const rendezvous::Notice& notice) = 0;
    /// Ends a process that is not needed, or that does not come back; exited() follows.
    virtual void end(int process) = 0;
    /// All members have ended well, or the job cannot go on for the reason `why`.
    virtual void finish(const std::string& why) = 0;
    virtual void warn(const std::string& line) = 0;
  };

  /// The processes of `allocation` are generation 0. `start_timeout`: how long a member may take to come back.
  Membership(const Allocation& allocation, ElasticSettings settings, std::chrono::milliseconds start_timeout,
             Actions& actions);

  void entered(int process);
  void ready(int process, const rendezvous::JoinRequest::Ready& ready, TimePoint now);
  void exited(int process, const End& end, TimePoint now);
  void host_lost(int host, const std::string& how, TimePoint now);
  /// The others have waited too long for this member: it is ended, and another process takes its place.
  void replace(int process, const std::string& why, TimePoint now);
  /// A host of this index and with so many slots can be used; its index may be new.
  void add_host(int host, const std::string& name, int slots, TimePoint now);
  /// The processes of the host leave at their next commit.
  void remove_host(int host, TimePoint now);

  TimePoint next_deadline(TimePoint now) const;
  void expire(TimePoint now);

  /// The loss of a rank does not end the job: some process has entered elastic.run(), and none has ended well yet.
  bool absorbs() const { return any_entered_ && !finishing_; }
  int generation() const { return generation_; }
  const ProcessRoll& roll() const { return roll_; }

 private:
  using Process = ProcessRoll::Process;
  using HostState = ProcessRoll::HostState;

  /// `is_guess`: a reason that is known later is better.
  void end_generation(const std::string& why, bool planned, TimePoint now, bool is_guess = false);
  void send_notice();
  void notify_growth();
  void form_if_ready(TimePoint now);
  void form(TimePoint now);
  void make_newcomers_of_absent_members();
  bool counts_as_reset(const std::vector<int>& next);
  void give_up(int number, TimePoint now);
  void start_missing(TimePoint now);
  std::vector<int> next_members() const;
  std::optional<int> host_for_next(TimePoint now);
  bool may_grow(TimePoint now) const;
  void go_on(TimePoint now);

  const ElasticSettings settings_;
  const std::chrono::milliseconds start_timeout_;
  Actions& actions_;
  ProcessRoll roll_;
  Exclusions exclusions_;
  rendezvous::Notice notice_;
  std::vector<int> wanted_hosts_;  // those on which a process failed and is to be replaced
  int next_process_;
  int generation_ = 0;
  bool forming_ = false;
  bool any_entered_ = false;
  bool finishing_ = false;  // a member has ended well, so no other generation follows
  std::string cause_;       // why the next generation is being formed
  bool cause_is_guess_ = false;
  bool own_failure_ = false;
  int resets_ = 0;
  int unreplaced_ = 0;  // members that were lost and have no successor yet
  int without_progress_ = 0;
  std::int64_t newest_commit_ = -1;  // when the present generation was formed
  TimePoint forming_since_{};
  TimePoint member_deadline_ = TimePoint::max();  // for the members that have to come back
  TimePoint size_deadline_ = TimePoint::max();    // for enough ranks
};

}  // namespace runjob
