#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "rendezvous/protocol.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/job/failure_report.hpp"
#include "runtime/job/process_sets.hpp"
#include "runtime/job/runtime_config.hpp"

namespace runjob::runtime {

/// The number of init() calls of this process in each job, by rendezvous address and generation, so that the exchanges
/// of two of them cannot mix. All ranks of a job count alike, because a call counts when all ranks have met in it.
using InitCounts = std::map<std::pair<std::string, int>, int>;

/// One rank's membership in a job.
struct Job {
  rendezvous::JoinReply place;
  std::shared_ptr<Engine> engine;             ///< shared with the calls that wait for an operation
  std::shared_ptr<ProcessSets> process_sets;  ///< shared with the engine's failure handler
  /// Shared with the backend and with the user's allocations; null when there is none.
  std::shared_ptr<BufferAllocator> job_buffers;
  std::shared_ptr<Timeline> timeline;             ///< shared with the engines
  Timeline::Options timeline_options;             ///< the options that the environment gives
  std::unique_ptr<FailureReport> failure_report;  ///< null without runjob's launcher
};

/// Joins a job: gets this process's ranks from the rendezvous, meets the other ranks there once, and connects to them.
/// A process that mpirun or srun has started uses their key store instead. Without either, the job is this process
/// alone. `process_sets` describes the sets that are added next.
/// Errors  Error: kConnect, kTimeout naming the missing ranks, kUnavailable, kPeerLost, kUsage, ...; kMismatch on all
///         ranks when `process_sets` is not the same on all.
Job join_job(const RuntimeConfig& config, InitCounts& rounds, const std::string& process_sets = "");

}  // namespace runjob::runtime
