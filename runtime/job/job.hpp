#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "rendezvous/meeting_place.hpp"
#include "rendezvous/protocol.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/job/failure_report.hpp"
#include "runtime/job/notice_watch.hpp"
#include "runtime/job/object_seals.hpp"
#include "runtime/job/process_sets.hpp"
#include "runtime/job/runtime_config.hpp"
#include "runtime/messages/rank_messages.hpp"
#include "runtime/negotiation/members.hpp"

namespace runjob::runtime {

/// The number of init() calls of this process in each job, by rendezvous address and generation, so that the exchanges
/// of two of them cannot mix. All ranks of a job count alike, because a call counts when all ranks have met in it.
using InitCounts = std::map<std::pair<std::string, int>, int>;

/// One rank's membership in a job. In an elastic job, in one generation of it; while `place.waiting`, in none yet: then
/// there are only the place that is meant and the failure report.
struct Job {
  rendezvous::JoinReply place;
  Members members;                            ///< all ranks, for messages; none while `place.waiting`
  std::shared_ptr<Engine> engine;             ///< shared with the calls that wait for an operation
  std::shared_ptr<ProcessSets> process_sets;  ///< shared with the engine's failure handler
  std::shared_ptr<ObjectSeals> object_seals;  ///< never null while `engine` is not
  std::shared_ptr<RankMessages> messages;     ///< likewise; shared with the calls that wait for a message
  /// Shared with the backend and with the user's allocations; null when there is none.
  std::shared_ptr<BufferAllocator> job_buffers;
  std::shared_ptr<Timeline> timeline;             ///< shared with the engines
  Timeline::Options timeline_options;             ///< the options that the environment gives
  std::shared_ptr<FailureReport> failure_report;  ///< outlives the membership; null without runjob's launcher
};

/// Joins a job: gets this process's ranks from the rendezvous, meets the other ranks there once, and connects to them.
/// A process that mpirun or srun has started uses their key store instead. Without either, the job is this process
/// alone. `process_sets` describes the sets that are added next.
/// Errors  Error: kConnect, kTimeout naming the missing ranks, kUnavailable, kPeerLost, kUsage, ...; kMismatch on all
///         ranks when `process_sets` is not the same on all.
/// Elastic jobs: a process that comes later, or whose first generation has ended before it was connected, gets a
/// place that is waiting.
Job join_job(const RuntimeConfig& config, InitCounts& rounds, const std::string& process_sets = "");
/// The same at `meeting_place`, whatever launcher has started this process.
Job join_job_at(rendezvous::MeetingPlace& meeting_place, const RuntimeConfig& config, InitCounts& rounds,
                const std::string& process_sets);

/// Elastic jobs: waits for the next generation that this process belongs to, and connects to its ranks; again for the
/// one after it when that ends meanwhile. The process has left its generation before, which is `ready.after`.
/// Errors  as rendezvous::Client::join_next(); kUnavailable, kMismatch, kAuth as join_job().
Job join_next_generation(const RuntimeConfig& config, InitCounts& rounds, rendezvous::JoinRequest::Ready ready,
                         NoticeWatch& watch);

/// From now on a notice that the generation has ended ends the operations of `job` and of its process sets.
void end_with_generation(NoticeWatch& watch, const Job& job);

}  // namespace runjob::runtime
