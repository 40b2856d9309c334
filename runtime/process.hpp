#pragma once

#include <map>
#include <memory>
#include <string>

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

  /// Does nothing when it is a member already.
  /// Errors  as join_job().
  void init(const Environment& environment);
  void shutdown();

  /// Null when not initialised.
  std::shared_ptr<const Job> job() const;
  /// Errors  Error(kNotInitialized).
  Engine& engine(const std::shared_ptr<const Job>& job) const;

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
