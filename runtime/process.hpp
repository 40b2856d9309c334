#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "runtime/job/job.hpp"
#include "runtime/job/rank_claim.hpp"
#include "runtime/life/goodbye.hpp"
#include "runtime/mpi_start/exchange_meeting.hpp"
#include "runtime/operations/handle_table.hpp"
#include "runtime/symmetric_memory.hpp"

namespace runjob::runtime {

/// The state behind the C interface: this process's membership in a job, if any, and its handles, which outlive the
/// membership.
/// Owner    There is one in each process. It is never destroyed, because threads of runjob and of the user may run
///          while the process exits. A forked child starts with a new one.
/// Threads  any.
class Process {
 public:
  /// The object of this process.
  static Process& current();

  /// The user's arguments of init().
  struct InitArguments {
    std::vector<std::vector<int>> process_sets;  ///< sets that are added at once
    /// true: other sets may be added later, even if the environment does not allow it
    bool dynamic_process_sets = false;
    /// The rank, the number of ranks, and the exchange among them of a job that no launcher has started.
    struct Own {
      int rank;
      int size;
      std::string host;  ///< this host's name in messages
      Exchange exchange;
    };
    std::optional<Own> own;  ///< wins over the variables of a launcher
  };

  /// Joins a job. Does nothing when the process is a member already.
  /// Errors  those of join_job(). Those of ProcessSets::add() for the first set that cannot be added: the process is
  ///         then a member all the same, and has the other sets.
  void init(const Environment& environment, const InitArguments& arguments);
  void init(const Environment& environment) { init(environment, InitArguments()); }
  /// Leaves the job. The other ranks learn how: after failing(), that this rank failed, and why.
  void shutdown(Goodbye how = Goodbye::kShutdown);

  /// Elastic jobs: this process has entered elastic.run(), and from now on receives the launcher's notices. Does
  /// nothing in other jobs, and the second time.
  /// Errors  Error(kNotInitialized).
  void elastic_enter();
  /// Elastic jobs: leaves the present generation and blocks until this process is a member of the next one. `commit`:
  /// the number of the newest state that it can restore, -1 for none; `reason`: an error of its own, "" for none.
  /// Errors  Error(kUsage) in another job; those of join_next_generation(): then the process is in no job any more.
  void elastic_meet(std::int64_t commit, const std::string& reason);
  /// How many steps this process has begun since the commit that it brings to its next meeting; less than 0: unknown.
  void elastic_steps(std::int64_t steps);
  /// What the launcher asks of this process.
  /// Errors  Error(kNotInitialized).
  NoticeWatch::Pending elastic_pending() const;
  /// True when this process is in an elastic job.
  bool is_elastic() const;

  /// Reports that this rank is about to end because of its own error. After shutdown() only the launcher learns it: a
  /// program may leave the job while its exception is on its way. Does nothing before init().
  void failing(const std::string& reason);

  /// The job of this process; null when not initialised.
  std::shared_ptr<const Job> job() const;
  /// The job of this process, in which it can run operations.
  /// Errors  Error(kNotInitialized); Error(kUnavailable) for a process that waits for its first generation.
  std::shared_ptr<const Job> member_job() const;
  /// Calls `use` with that job and returns its result. If it throws because a rank is lost, the launcher is notified as
  /// by report_loss().
  template <class Use>
  auto with_job(Use use) const {
    const std::shared_ptr<const Job> job = member_job();
    try {
      return use(*job);
    } catch (const Error& error) {
      report_loss(Status(error));
      throw;
    }
  }
  /// Reports `outcome` to the launcher too if it means that this rank cannot continue because of another rank. After
  /// this process's own shutdown() there is no job, and nothing is reported.
  void report_loss(const Status& outcome) const;

  HandleTable& handles() { return handles_; }
  SymmetricMemory& symmetric_memory() { return symmetric_memory_; }

 private:
  Job join(const RuntimeConfig& config, const InitArguments& arguments, const std::string& sets)
      REQUIRES(lifecycle_mutex_);
  void leave(Goodbye how);

  Mutex lifecycle_mutex_;  ///< one init() or shutdown() at a time
  InitCounts init_counts_ GUARDED_BY(lifecycle_mutex_);
  std::optional<RankClaim> claim_ GUARDED_BY(lifecycle_mutex_);  ///< from init() to shutdown()

  mutable Mutex mutex_;
  std::shared_ptr<const Job> job_ GUARDED_BY(mutex_);  // shared with the calls that are using it
  std::string failure_ GUARDED_BY(mutex_);             ///< the reason that failing() was given in this job
  std::shared_ptr<FailureReport> failure_report_ GUARDED_BY(mutex_);  ///< of the last job; shared with it
  std::optional<RuntimeConfig> config_ GUARDED_BY(mutex_);            ///< of the last init() that has succeeded
  std::int64_t steps_ GUARDED_BY(mutex_) = -1;             ///< as given to elastic_steps(), until the next meeting
  std::shared_ptr<NoticeWatch> watch_ GUARDED_BY(mutex_);  ///< shared with its thread; null before elastic_enter()

  HandleTable handles_;
  SymmetricMemory symmetric_memory_;
};

}  // namespace runjob::runtime
