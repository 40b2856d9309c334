#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "runtime/engine/operation_runner.hpp"
#include "runtime/engine/stall_inspector.hpp"
#include "runtime/mpi_start/foreign_launcher.hpp"

namespace runjob::runtime {

/// Everything the runtime takes from the environment, read once per init(). Each RUNJOB_ variable may also be
/// called HOROVOD_; when both are set, RUNJOB_ counts. An empty value counts as not set.
struct RuntimeConfig {
  /// RUNJOB_RENDEZVOUS: where to ask for this process's place; without it, `launcher` knows.
  std::optional<std::string> rendezvous;
  /// What mpirun or srun says, where one of them has started this process; else the job is this process alone.
  ForeignLauncher launcher;
  /// RUNJOB_RANK: which rank this is; needed with a rendezvous. HOROVOD_RANK is its alias.
  int rank = 0;
  /// RUNJOB_JOB_KEY_FILE: the file of the job's key, needed with a rendezvous over a network.
  std::optional<std::string> job_key_file;
  /// RUNJOB_START_TIMEOUT: how long init() waits for the other ranks; by default what the job says.
  std::optional<std::chrono::milliseconds> start_timeout;
  /// RUNJOB_SHARED_MEMORY: whether ranks on one host exchange data through memory that they share.
  bool shared_memory = true;
  /// RUNJOB_CMA: whether they may read each other's memory through the kernel where that is faster.
  bool cma = true;
  /// XDG_CACHE_HOME, HOME: the folder in which what was measured of this machine is kept for the next job; empty with
  /// RUNJOB_REMEMBER_WAYS=0 and without a home: nothing is.
  std::string cache_directory;
  /// RUNJOB_HIERARCHICAL_ALLREDUCE, RUNJOB_HIERARCHICAL_ALLGATHER: whether these, between hosts, join what a host's ranks have
  /// in shared memory first; else every rank talks to ranks of other hosts by itself.
  bool hierarchical_allreduce = true, hierarchical_allgather = true;
  /// RUNJOB_GLOO_TIMEOUT_SECONDS: how long a running collective may wait for another rank's data.
  std::chrono::milliseconds gloo_timeout{30000};
  /// RUNJOB_GLOO_IFACE: the network interface that other hosts reach this one by; by default the first that
  /// is up.
  std::string interface;
  /// RUNJOB_ADDRESS: the numeric address by which the other ranks reach this one, as the launcher has found out; an
  /// interface counts instead when one is named.
  std::string address;
  /// RUNJOB_CACHE_CAPACITY: how many operations the response cache remembers; 0 for none. Rank 0's counts.
  std::uint32_t cache_capacity = 1024;
  /// RUNJOB_FUSION_THRESHOLD: the most bytes of small allreduces that are run as one; 0: each is by itself.
  /// RUNJOB_DISABLE_GROUP_FUSION: whether tensors of a grouped operation are with none but each other. Rank 0's count.
  FusionSettings fusion;
  /// RUNJOB_CYCLE_TIME: how many milliseconds an asynchronous operation may wait for others to be fused with.
  std::chrono::microseconds cycle_time{0};
  /// RUNJOB_STALL_CHECK_DISABLE, RUNJOB_STALL_CHECK_TIME_SECONDS, RUNJOB_STALL_SHUTDOWN_TIME_SECONDS: when operations that only some ranks
  /// have submitted are warned of, and when they end the job.
  StallLimits stall_limits;
  /// RUNJOB_DYNAMIC_PROCESS_SETS: whether process sets may be added and removed after init().
  bool dynamic_process_sets = false;
  /// RUNJOB_TIMELINE: the file of rank 0's trace, from init() on; DYNAMIC: none yet.
  std::optional<std::string> timeline;
  /// RUNJOB_TIMELINE_MARK_CYCLES: mark each round of negotiation in the trace.
  bool timeline_mark_cycles = false;
  /// RUNJOB_TIMELINE_ALL_RANKS: a track for each rank in it. On all ranks or on none.
  bool timeline_all_ranks = false;
  /// RUNJOB_TIMELINE_MAX_MB, in MiB: how long the file may become.
  std::uint64_t timeline_most_bytes = 256u << 20;
  /// RUNJOB_LOG_LEVEL: how much the runtime writes to standard error.
  log::Level log_level = log::Level::kWarn;

  /// Not values but remarks about them, to be logged once: names that look misspelt, sizes without a
  /// rendezvous.
  std::vector<std::string> warnings;
};

/// Pure.
/// Errors  Error(kUsage) naming the variable, its value and the accepted form.
RuntimeConfig read_runtime_config(const Environment& environment);

}  // namespace runjob::runtime
