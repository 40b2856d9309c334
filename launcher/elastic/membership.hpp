#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/elastic/exclusions.hpp"
#include "launcher/elastic/generation_cause.hpp"
#include "launcher/elastic/generation_limits.hpp"
#include "launcher/elastic/host_choice.hpp"
#include "launcher/elastic/notice_sender.hpp"
#include "launcher/elastic/process_roll.hpp"
#include "launcher/job_spec/elastic_settings.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob {

/// Decides who belongs to an elastic job: which processes form a generation, when a new one is needed, which processes
/// are started in place of lost ones and on new hosts, and when the job cannot go on.
///
/// A process has a number that never changes. It enters elastic.run(), is ready when it waits for the next generation,
/// and is a member while it has a rank in the present one. A generation ends when a member is lost, when a member asks
/// for the next one, or at the members' next commit after the hosts have changed. The members that are left meet; when
/// all of them are ready, and at least ElasticSettings::min_ranks with the newcomers that are ready too, they are the
/// next generation. A newcomer never delays them, except under Horovod's rules. A spare is a process that is ready
/// while the job has all of its ranks: it takes a lost member's place.
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
    std::vector<Member> members;          ///< by rank
    std::string cause;                    ///< "rank 5 on s2 was killed by signal 9"
    std::vector<std::string> left, came;  ///< "rank 5 on s2", by their ranks before and now
    std::chrono::steady_clock::duration stood_still{};
    std::int64_t steps_redone = -1;  ///< the steps begun after the commit from which it goes on; less than 0: unknown
    /// For people: "rank 5 on s2 was killed by signal 9. The job goes on with 7 ranks (generation 1), which stood still
    /// for 0.21 s; no new process starts on s2."
    std::string told;
  };
  /// A process to start, and the place that it will probably get.
  struct Start {
    int process = 0;
    int host = 0;
    int local_rank = 0;
    int rank = 0;
    int size = 1;
    ProcessRoll::HostNumber host_number = {};
  };
  /// How a process ended.
  struct End {
    bool clean = false;  ///< with status 0
    std::string how;     ///< "was killed by signal 9 (SIGKILL)"
  };

  /// The owner's side. All are set.
  struct Actions {
    std::function<void(const Start& start)> start;
    std::function<void(const Generation& generation)> form;
    std::function<void(const rendezvous::Notice& notice)> notify;
    /// Ends a process that is not needed, or that does not come back; exited() follows.
    std::function<void(int process)> end;
    /// Why no process can start on this host at present, though nothing is wrong with it: "the ranks on s1 are reached
    /// at 127.0.0.1 only"; "" if one can, as far as is known before it is tried.
    std::function<std::string(int host)> obstacle;
    /// A host that was removed has no process any more.
    std::function<void(int host)> leave;
    /// All members have ended well, or the job cannot go on for the reason `why`.
    std::function<void(const std::string& why)> finish;
    std::function<void(const std::string& line)> warn;
  };

  /// The processes of `allocation` are generation 0. `start_timeout`: how long a member may take to come back.
  Membership(const Allocation& allocation, ElasticSettings settings, std::chrono::milliseconds start_timeout,
             Actions actions);

  /// Generation 0 has been started: starts the spares.
  void begin(TimePoint now);
  /// The process has entered elastic.run().
  void entered(int process, TimePoint now);
  /// The process waits for the next generation. Returns false if there is none for it: it is a member, and another one
  /// has ended well.
  bool ready(int process, const rendezvous::JoinRequest::Ready& ready, TimePoint now);
  /// A process reports that it is failing: by an error of its `own`, or because it has lost another one. It goes on to
  /// end or to be ready.
  void failing(int process, bool own, const std::string& reason);
  void exited(int process, const End& end, TimePoint now);
  /// `text`: what happened, for people.
  void host_lost(int host, const std::string& text, TimePoint now);
  /// A host on which processes were to start cannot join the job. It is excluded as if it was lost, unless there is an
  /// obstacle of which it is not the cause.
  void host_not_joined(int host, const std::string& why, TimePoint now);
  /// The others have waited too long for this member: it is ended, and another process takes its place.
  void replace(int process, const std::string& why, TimePoint now);
  /// A host of this index, which may be new, has so many slots now; 0: it is not to be used any more. Processes that
  /// have no slot any more leave at their next commit. `forgiven`: the host is not excluded any more.
  void set_host(int host, const std::string& name, int slots, TimePoint now, bool forgiven = false);
  /// The job is to have this many ranks, when there are slots for them. Members that are too many leave.
  void resize(int ranks, TimePoint now);

  /// The time at which expire() has something to do; TimePoint::max() for none. It may change with every call.
  TimePoint next_deadline(TimePoint now) const;
  void expire(TimePoint now);

  /// The loss of a rank does not end the job: some process has entered elastic.run(), and none has ended well yet.
  bool absorbs() const { return any_entered_ && !finishing_; }
  int generation() const { return generation_; }
  const ProcessRoll& roll() const { return roll_; }
  /// No process starts on this host any more, or as long as the job is as it is.
  bool is_ruled_out(int host) const {
    return exclusions_.is_excluded_for_ever(host) || !actions_.obstacle(host).empty();
  }

 private:
  using Process = ProcessRoll::Process;
  using Cause = GenerationCause::Kind;

  void end_by_request(int process, const std::string& error, TimePoint now);
  void end_generation(Cause kind, const std::string& reason, TimePoint now, const std::string& consequence = "");
  void notify_growth();
  void judge_failures(std::int64_t newest_commit, TimePoint now);
  bool delays_forming(std::int64_t newest_commit, TimePoint now);
  void form_if_ready(TimePoint now);
  void wait_for_ranks(int ready, TimePoint now);
  void form(const std::vector<int>& next, TimePoint now);
  void drop(int number);
  std::string blame(const Process& failed, bool of_member, TimePoint now);
  void let_go(const std::vector<int>& numbers);
  void start_missing(TimePoint now);
  void go_on(TimePoint now);

  ElasticSettings settings_;
  const std::chrono::milliseconds start_timeout_;
  const Actions actions_;
  ProcessRoll roll_;
  Exclusions exclusions_;
  GenerationLimits limits_;
  NoticeSender notices_;
  HostChoice next_host_;
  int next_process_;
  int target_;  // as many members as there were at most: spares replace those that are lost, up to this number
  int generation_ = 0;
  bool begun_ = false;
  bool forming_ = false;
  bool any_entered_ = false;
  bool finishing_ = false;  // a member has ended well, so no other generation follows
  GenerationCause cause_;
  std::vector<std::string> left_;  // the members that have left since the last generation was formed
  TimePoint forming_since_{};
  TimePoint member_deadline_ = TimePoint::max();    // for the members that have to come back
  TimePoint pause_deadline_ = TimePoint::max();     // after members have lost each other again
  TimePoint newcomer_deadline_ = TimePoint::max();  // for newcomers, by Horovod's rules
  TimePoint size_deadline_ = TimePoint::max();      // for enough ranks
};

}  // namespace runjob
