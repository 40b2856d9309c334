#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/mesh_setup.hpp"
#include "runtime/engine/runtime_config.hpp"

namespace runjob::runtime {

/// What process sets are made from: the job, as one rank of it knows it.
struct JobFacts {
  RuntimeConfig config;
  int rank = 0;
  Members members;         ///< all ranks
  std::vector<int> hosts;  ///< by rank: equal numbers for ranks on one host
  std::chrono::milliseconds start_timeout{0};
  std::shared_ptr<Timeline> timeline;             ///< shared with the engines
  std::shared_ptr<SymmetricHeap> symmetric_heap;  ///< shared with the sets' backends; null when there is none
};

/// The process sets of a job, as one rank knows them: number 0 is the whole job; each other one is an engine of its own among
/// its members, so that sets need no common order, wait for nobody else, and may overlap. All ranks of the job know all sets.
///
/// Changes  add() and remove() are called by all ranks of the job, in the same order; they agree over the job's own engine, so
///          they block until all ranks have come. Freed numbers are given again, those first that were freed first.
/// Life     a set ends with the job, when that fails, and when one of its members calls shutdown(). A set that fails ends the job. A
///          rank that is in none of its members may leave: the set goes on without it.
/// Threads  any.
class ProcessSets {
 public:
  /// `job` outlives this, but for its destructor.
  ProcessSets(JobFacts facts, const std::shared_ptr<Engine>& job);
  ~ProcessSets();  ///< shuts them down
  ProcessSets(const ProcessSets&) = delete;
  ProcessSets& operator=(const ProcessSets&) = delete;

  /// The new set's number. `ranks` in the job, in any order.
  /// Errors  Error, on all ranks: kInvalidArgument for no ranks, unknown or repeated ones, and ranks that are a set already;
  ///         kMismatch when the ranks do not ask for the same, naming who asks for what; kUnavailable naming the rank that could
  ///         not connect; the job's end.
  int add(std::vector<int> ranks);
  /// Operations in flight in it end with kAborted. Errors  as add(); kInvalidArgument for an unknown set, and number 0.
  void remove(int id);

  /// The engine that runs operations of the set on this rank; not for number 0. `what`: the operation, for the error.
  /// Errors  Error(kInvalidArgument) for an unknown set, and when this rank is not in it.
  std::shared_ptr<Engine> find(int id, const std::string& what) const;

  /// Whether the user may add and remove sets after init().
  bool is_dynamic() const { return facts_.config.dynamic_process_sets; }
  int own_rank() const { return facts_.rank; }

  /// Ascending.
  std::vector<int> ids() const;
  /// Ascending. Errors  Error(kInvalidArgument) for an unknown set.
  std::vector<int> ranks(int id) const;

  /// The job has failed: ends all sets on this rank.
  void end(const Status& why);
  /// The two parts of leaving: the first waits for nothing, both together take within a second.
  void begin_shutdown();
  void shutdown();

 private:
  struct Set {
    std::vector<int> ranks;
    std::shared_ptr<Engine> engine;  ///< shared with calls that use it; null where this rank is no member
  };

  std::vector<std::string> exchange(const std::string& own);
  void agree(const std::string& change);
  void check_ranks(const std::vector<int>& ranks) const;
  MeshPlan plan_for(int id, const std::vector<int>& ranks) const;
  std::vector<BootstrapBlob> gather(const std::vector<int>& ranks, const BootstrapBlob& own);
  std::shared_ptr<Engine> connect(const MeshPlan& plan, Prepared prepared, const Meeting& meeting);
  void check_outcomes(int id, const std::string& own);
  void insert(int id, Set set);
  void close(const Status& why) REQUIRES(mutex_);

  const JobFacts facts_;
  Engine& job_;
  const std::weak_ptr<Engine> shared_job_;
  const EventFd cancel_;  ///< connections that are being made are to end

  Mutex change_mutex_;  ///< one add() or remove() at a time

  mutable Mutex mutex_;
  std::map<int, Set> sets_ GUARDED_BY(mutex_);
  int next_id_ GUARDED_BY(mutex_) = 1;
  std::deque<int> free_ids_ GUARDED_BY(mutex_);
  std::shared_ptr<Engine> connecting_ GUARDED_BY(mutex_);  ///< of add()
  Status closed_ GUARDED_BY(mutex_);                       ///< why there will be no more sets
};

}  // namespace runjob::runtime
