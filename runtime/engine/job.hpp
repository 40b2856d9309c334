#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "rendezvous/protocol.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/failure_report.hpp"
#include "runtime/engine/process_sets.hpp"
#include "runtime/engine/runtime_config.hpp"

namespace runjob::runtime {

/// Counts this process's rounds of init() in each job, so that the rounds of one job cannot mix: by
/// rendezvous address and generation. All ranks of a job count alike, since a round counts when all have met
/// in it.
using InitCounts = std::map<std::pair<std::string, int>, int>;

/// One rank's membership in a job.
struct Job {
  rendezvous::JoinReply place;
  std::shared_ptr<Engine> engine;             ///< shared with calls that wait for an operation
  std::shared_ptr<ProcessSets> process_sets;  ///< shared with what the engine does when it fails
  /// Shared with the backend and with what was allocated from it; null when there is none.
  std::shared_ptr<SymmetricHeap> symmetric_heap;
  std::shared_ptr<Timeline> timeline;             ///< shared with the engines
  Timeline::Options timeline_options;             ///< as far as the environment says
  std::unique_ptr<FailureReport> failure_report;  ///< null when there is no launcher of ours
};

/// Asks the rendezvous for this process's place, meets the other ranks there once, and connects to them. Started by mpirun or srun:
/// the same through their key store. Without either: a job of this process alone. Errors  Error: kConnect, kTimeout naming who is
/// missing, kUnavailable, kPeerLost, kUsage... `process_sets`: which ones are going to be added next, as text: kMismatch on all ranks
/// when it is not the same on all.
Job join_job(const RuntimeConfig& config, InitCounts& rounds, const std::string& process_sets = "");

}  // namespace runjob::runtime
