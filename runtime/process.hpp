#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "runtime/engine/handle_table.hpp"
#include "runtime/engine/job.hpp"
#include "runtime/symmetric_memory.hpp"

namespace runjob::runtime {

/// What the C interface acts on: this process's membership in a job, if any, and its handles, which outlive
/// it. One per process and never destroyed, since threads of ours and of the user may run while the process
/// exits; a forked child starts with a fresh one. Threads  any.
class Process {
 public:
  /// The process's own.
  static Process& current();

  /// What the user asks of init().
  struct Wish {
    std::vector<std::vector<int>> process_sets;  ///< to be added at once
    bool dynamic_process_sets = false;  ///< whether others may be added later, beside what the environment says
  };

  /// Does nothing when it is a member already.
  /// Errors  as join_job(); as ProcessSets::add(), of the first set that cannot be added: then the process is a member all the same,
  ///         and has the other sets.
  void init(const Environment& environment, const Wish& wish);
  void init(const Environment& environment) { init(environment, Wish()); }
  void shutdown();

  /// Null when not initialised.
  std::shared_ptr<const Job> job() const;
  /// Errors  Error(kNotInitialized).
  std::shared_ptr<const Job> member_job() const;
  /// What `use` does with that job. When it throws because of a lost rank, the launcher is told, as by report_loss().
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
  /// Tells the launcher too what the caller is told, when it means that this rank cannot go on because of another.
  /// Not after our own shutdown(): then there is no job any more.
  void report_loss(const Status& outcome) const;

  HandleTable& handles() { return handles_; }
  SymmetricMemory& symmetric_memory() { return symmetric_memory_; }

 private:
  Mutex lifecycle_mutex_;  ///< one init() or shutdown() at a time
  InitCounts init_counts_ GUARDED_BY(lifecycle_mutex_);

  mutable Mutex mutex_;
  std::shared_ptr<const Job> job_ GUARDED_BY(mutex_);  // shared with the calls that are using it

  HandleTable handles_;
  SymmetricMemory symmetric_memory_;
};

}  // namespace runjob::runtime
