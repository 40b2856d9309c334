#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "runtime/mpi_start/foreign_launcher.hpp"
#include "runtime/negotiation/stall_inspector.hpp"
#include "runtime/operations/operation_runner.hpp"

namespace runjob::runtime {

constexpr std::uint64_t kDefaultBucketBytes = 16u << 20;  // docs/developers/measurements.md

/// The search for the best size of the bindings' buckets. Rank 0's values count.
struct AutotuneSettings {
  bool is_on = false;                  ///< RUNJOB_AUTOTUNE
  std::optional<std::string> log;      ///< RUNJOB_AUTOTUNE_LOG: the file of the samples
  std::int64_t warmup_samples = 3;     ///< RUNJOB_AUTOTUNE_WARMUP_SAMPLES
  std::int64_t steps_per_sample = 10;  ///< RUNJOB_AUTOTUNE_STEPS_PER_SAMPLE, at least 1
  std::int64_t most_samples = 20;      ///< RUNJOB_AUTOTUNE_BAYES_OPT_MAX_SAMPLES, not counting those of the warm-up
};

/// All settings that the runtime takes from the environment, read once per init(). Each RUNJOB_ variable may also be
/// called HOROVOD_; if both are set, RUNJOB_ wins. An empty value counts as not set.
struct RuntimeConfig {
  /// RUNJOB_RENDEZVOUS: the address at which this process joins; without it, `launcher` is used.
  std::optional<std::string> rendezvous;
  /// The information of mpirun or srun if one of them has started this process. Otherwise the job is this process
  /// alone.
  ForeignLauncher launcher;
  /// RUNJOB_RANK: this process's rank; required with a rendezvous. HOROVOD_RANK is its alias. In an elastic job
  /// RUNJOB_PROCESS_NUMBER instead, which never changes.
  int rank = 0;
  /// RUNJOB_ELASTIC: the job goes on with other ranks when some are lost or added.
  bool elastic = false;
  /// RUNJOB_JOB_KEY_FILE: the file with the job's key, required with a rendezvous over a network.
  std::optional<std::string> job_key_file;
  /// RUNJOB_START_TIMEOUT: how long init() waits for the other ranks; by default the job's start timeout.
  std::optional<std::chrono::milliseconds> start_timeout;
  /// RUNJOB_SHARED_MEMORY: ranks on one host exchange data through shared memory.
  bool shared_memory = true;
  /// RUNJOB_CMA: ranks may read each other's memory through the kernel where that is faster.
  bool cma = true;
  /// RUNJOB_HIERARCHICAL_ALLREDUCE, RUNJOB_HIERARCHICAL_ALLGATHER: between hosts, these operations first combine the
  /// data of a host's ranks in shared memory. If false, every rank exchanges data with ranks of other hosts itself.
  bool hierarchical_allreduce = true, hierarchical_allgather = true;
  /// RUNJOB_CPU_OPERATIONS is "gloo": all collectives are Gloo's, among all ranks alike.
  bool gloo = false;
  /// RUNJOB_ENCRYPT_DATA: what ranks on different hosts send each other is encrypted. Must be the same on all ranks.
  bool encrypt_data = false;
  /// RUNJOB_NCCL_UNENCRYPTED: with `encrypt_data`, NCCL may nevertheless send tensors of GPUs to other hosts, in clear.
  bool nccl_unencrypted = false;
  /// RUNJOB_GLOO_TIMEOUT_SECONDS: how long a running collective may wait for another rank's data.
  std::chrono::milliseconds gloo_timeout{30000};
  /// RUNJOB_GLOO_IFACE: the network interface by which other hosts reach this one; by default the first one that is up.
  std::string interface;
  /// RUNJOB_ADDRESS: the numeric address by which the other ranks reach this one, as determined by the launcher. A
  /// named interface wins over it.
  std::string address;
  /// RUNJOB_CACHE_CAPACITY: number of operations in the response cache; 0 for none. Rank 0's value counts.
  std::uint32_t cache_capacity = 1024;
  /// RUNJOB_FUSION_THRESHOLD: largest fusion of small allreduces, in bytes; 0 for no fusion.
  /// RUNJOB_DISABLE_GROUP_FUSION: tensors of a grouped operation are fused with each other only. Rank 0's values count.
  FusionSettings fusion;
  /// RUNJOB_BUCKET_MB, in MiB: gradients that the bindings reduce as one; kDefaultBucketBytes unless it is set. The
  /// threshold of fusion limits it. Rank 0's value counts.
  std::optional<std::uint64_t> given_bucket_bytes;
  std::uint64_t bucket_bytes() const;
  AutotuneSettings autotune;
  /// RUNJOB_CYCLE_TIME: longest time that an asynchronous operation may wait for others to be fused with.
  std::chrono::microseconds cycle_time{0};
  /// RUNJOB_STALL_CHECK_DISABLE, RUNJOB_STALL_CHECK_TIME_SECONDS, RUNJOB_STALL_SHUTDOWN_TIME_SECONDS: the times after
  /// which a stalled operation causes a warning, and after which it ends the job.
  StallLimits stall_limits;
  /// RUNJOB_DYNAMIC_PROCESS_SETS: process sets may be added and removed after init().
  bool dynamic_process_sets = false;
  bool has_process_sets = false;  ///< init() was given some
  /// RUNJOB_TIMELINE: the file of rank 0's trace, which starts in init(); DYNAMIC: none yet.
  std::optional<std::string> timeline;
  /// RUNJOB_TIMELINE_MARK_CYCLES: the trace marks each round of negotiation.
  bool timeline_mark_cycles = false;
  /// RUNJOB_TIMELINE_ALL_RANKS: the trace has a track for each rank. Must be the same on all ranks.
  bool timeline_all_ranks = false;
  /// RUNJOB_TIMELINE_MAX_MB, in MiB: size limit of the trace's file.
  std::uint64_t timeline_most_bytes = 256u << 20;
  /// RUNJOB_LOG_LEVEL: how much the runtime writes to standard error.
  log::Level log_level = log::Level::kWarn;
  /// RUNJOB_LOG_HIDE_TIME: lines have no time, which they have at level INFO and below.
  bool log_hides_time = false;

  /// Remarks about the values, to be logged once: names that look misspelt, sizes without a rendezvous.
  std::vector<std::string> warnings;
};

/// Reads and checks all settings. Pure.
/// Errors  Error(kUsage) naming the variable, its value and the accepted form.
RuntimeConfig read_runtime_config(const Environment& environment);

}  // namespace runjob::runtime
