#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/job/mesh_setup.hpp"
#include "runtime/job/runtime_config.hpp"
#include "runtime/mpi_start/exchange_meeting.hpp"

namespace runjob::runtime {

/// The facts about the job from which process sets are made, as one rank knows them.
struct JobFacts {
  RuntimeConfig config;
  int rank = 0;
  Members members;         ///< all ranks
  std::vector<int> hosts;  ///< by rank: ranks on one host have equal numbers
  std::chrono::milliseconds start_timeout{0};
  std::optional<rendezvous::JobKey> job_key;     ///< see MeshPlan
  std::shared_ptr<Timeline> timeline;            ///< shared with the engines
  std::shared_ptr<BufferAllocator> job_buffers;  ///< shared with the sets' backends; null when there is none
};

/// The process sets of a job, as one rank knows them. Set 0 is the whole job. A set of add() is an engine of its own
/// among its members, so that sets need no common order, wait for no other rank, and may overlap. All ranks of the job
/// know these sets. Sets of add_members() with equal members in the same order share an engine, and so its threads: the
/// job's own one if these are all ranks in the job's order.
///
/// Changes  All ranks of the job call add() and remove() in the same order. They agree over the job's own engine, so
///          the calls block until all ranks have made them. Freed ids are used again, the one freed first first.
/// Life     A set ends with the job, when the job fails, and when one of its members calls shutdown(). A rank that is
///          not a member may leave, and the set goes on without it. A set of add() that fails ends the job. One of
///          add_members() ends alone, with those that share its engine.
/// Threads  any.
class ProcessSets {
 public:
  /// `job` outlives this object, except during its destructor.
  ProcessSets(JobFacts facts, const std::shared_ptr<Engine>& job);
  ~ProcessSets();  ///< shuts the sets down
  ProcessSets(const ProcessSets&) = delete;
  ProcessSets& operator=(const ProcessSets&) = delete;

  /// Adds a set and returns its id. `ranks` are ranks of the job, in any order.
  /// Errors  Error, on all ranks: kInvalidArgument for no ranks, unknown or repeated ones, and ranks that already form
  ///         a set; kMismatch when the ranks ask for different changes, naming them; kUnavailable naming the rank that
  ///         could not connect; the error that ended the job.
  int add(std::vector<int> ranks);
  /// Adds a set by its members alone, and returns its id, which is equal on all of them: kFirstMembersId or more, so
  /// that it never is that of a set of add(). `ranks` are ranks of the job, in the order that the set is to have; there
  /// may be other sets of these ranks. `exchange` is one among the members, by their index in `ranks`.
  /// Errors  as add(), on all members; kInvalidArgument also when this rank is not in `ranks`; those of `exchange`.
  int add_members(const std::vector<int>& ranks, const Exchange& exchange);
  static constexpr int kFirstMembersId = 1 << 20;
  /// Removes a set; of add_members(), on this rank, while on the other members its operations end. Its operations in
  /// flight end with kAborted.
  /// Errors  as add(); kInvalidArgument for an unknown set, and for set 0.
  void remove(int id);
  /// Calls `use` with the engine of a set that exists only meanwhile; with null on a rank that is no member. All ranks
  /// call it as add(), but with ranks that they have agreed on: ascending, and less than all. Another set may have the
  /// same ranks. When `use` returns on one member, the operations of all members must have ended.
  /// Errors  those of `use`; kConnect naming the rank that could not connect; the error that ended the job.
  void with_set(const std::vector<int>& ranks, const std::function<void(Engine* set)>& use);

  /// Ends a set of add_members() on all its members: see Engine::give_up(). A set of add(), or set 0, ends the job.
  /// `reason` becomes part of the error of all operations.
  /// Errors  Error(kInvalidArgument) for an unknown set, and when this rank is not a member.
  void give_up(int id, const std::string& reason);

  /// The engine that runs operations of the set on this rank; not for set 0. `what` gives the operation, for the
  /// error's text.
  /// Errors  Error(kInvalidArgument) for an unknown set, and when this rank is not a member.
  std::shared_ptr<Engine> find(int id, const std::function<std::string()>& what) const;

  /// True if the user may add and remove sets after init().
  bool is_dynamic() const { return facts_.config.dynamic_process_sets; }
  int own_rank() const { return facts_.rank; }

  /// The engines of the sets to which this rank belongs, each once, without the job's own.
  std::vector<std::shared_ptr<Engine>> engines() const;
  /// All ids that add() has given, in ascending order.
  std::vector<int> ids() const;
  /// The set's ranks, in its order: ascending in a set of add().
  /// Errors  Error(kInvalidArgument) for an unknown set.
  std::vector<int> ranks(int id) const;

  /// The operations of all sets in flight on this rank that wait for other ranks.
  std::vector<Wait> waits() const;

  /// Called when the job has failed: ends all sets on this rank.
  void end(const Status& why);
  /// The two parts of leaving. The first waits for nothing; both together take at most a second. `why`: the reason that
  /// operations in flight end with, here and on the other ranks.
  void begin_shutdown(const Status& why);
  void shutdown();

 private:
  struct Set {
    std::vector<int> ranks;
    std::shared_ptr<Engine> engine;  ///< shared with the calls that use it; null if this rank is not a member
    int number = 0;                  ///< the number of the engine: the id of the first set that it has; 0: the job's
  };

  std::vector<std::string> exchange(const std::string& own);
  void agree(const std::string& change);
  void check_ranks(const std::vector<int>& ranks) const;
  void check_new(const std::vector<int>& ranks) const;
  int make(std::vector<int> ranks);
  void make(int id, std::vector<int> ranks, const Exchange& among_members);
  void drop(int id, const Status& why);
  std::vector<std::shared_ptr<Engine>> own_engines() const REQUIRES(mutex_);
  int engine_of(const std::vector<int>& ranks) const REQUIRES(mutex_);
  void share(int id, const std::vector<int>& ranks, int number);
  MeshPlan plan_for(int id, const std::vector<int>& ranks) const;
  std::shared_ptr<Engine> connect(const MeshPlan& plan, Prepared prepared, const Meeting& meeting);
  static void check_outcomes(const MeshPlan& plan, const std::string& own, const Exchange& among_members);
  void insert(int id, Set set);
  void close(const Status& why) REQUIRES(mutex_);

  const JobFacts facts_;
  Engine& job_;
  const std::weak_ptr<Engine> shared_job_;
  const EventFd cancel_;  ///< signalled to end connections in progress

  Mutex change_mutex_;  ///< one add() or remove() at a time

  mutable Mutex mutex_;
  std::map<int, Set> sets_ GUARDED_BY(mutex_);
  int next_id_ GUARDED_BY(mutex_) = 1;
  int next_members_id_ GUARDED_BY(mutex_) = kFirstMembersId;
  std::deque<int> free_ids_ GUARDED_BY(mutex_);
  std::shared_ptr<Engine> connecting_ GUARDED_BY(mutex_);  ///< the set that add() is connecting
  Status closed_ GUARDED_BY(mutex_);                       ///< the reason why there will be no more sets
};

}  // namespace runjob::runtime
