#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "base/unique_handle.hpp"
#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/call_thread.hpp"
#include "runtime/engine/control_plane.hpp"
#include "runtime/engine/handle_table.hpp"
#include "runtime/timeline/timeline.hpp"

namespace runjob::runtime {

/// One operation as its caller submits it. The buffers are lent until its Completion is done.
struct Submission {
  std::string name;
  Signature signature;
  const void* input = nullptr;
  void* output = nullptr;  ///< null where the result belongs to the Completion: allgather, alltoall, reducescatter
};

/// What an engine runs on. It owns all of it.
struct EngineParts {
  int rank = 0, size = 1;
  std::string self;                    ///< how messages name this rank: "rank 3 on s4"
  std::unique_ptr<Timeline> timeline;  ///< null when off; outlives the two below, which write to it
  std::unique_ptr<ControlPlane> control;
  std::unique_ptr<Backend> backend;
};

/// One rank's part in one job, from init to shutdown: takes operations from any thread, negotiates them, has
/// the backend run them in the agreed order and finishes their completions.
///
/// Life     running -> leaving (some rank called shutdown) -> ended, or running -> ended (a rank was lost, a
/// failure);
///          once not running, submit() refuses with the cause and every completion ends with it.
/// Threads  submit() and shutdown() from any thread. One thread of its own, "runjob-engine", sleeps in poll()
/// until a
///          submission, a message or a completion wakes it.
class Engine {
 public:
  explicit Engine(EngineParts parts);
  ~Engine();  ///< shuts down
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Connects the backend, once, before anything is submitted; meanwhile the loss of another rank ends it. `addresses`: every rank's, by rank.
  /// The status is the cause of the failure as the coordinator sees it, when it does.
  Status connect(const std::vector<std::string>& addresses);

  /// Errors  Error(kInvalidArgument): the operation can never work, or its name is in flight; kAborted,
  /// kPeerLost,
  ///         kTimeout...: the job has ended. Everything later arrives through the completion.
  std::shared_ptr<Completion> submit(Submission submission);

  /// Leaves the job and finishes every completion. Returns within a second, whatever the other ranks do.
  void shutdown();

 private:
  using Clock = ControlPlane::Clock;
  enum class Phase { kRunning, kLeaving, kEnded };
  /// An operation in flight on this rank.
  struct Entry {
    Submission submission;
    std::shared_ptr<Completion> completion;
    bool running = false;  ///< the backend may touch the buffers
    Completion::Result result;
  };
  using Entries = std::unordered_map<std::string, Entry>;

  void run();
  void step();
  void wait_for_events(std::vector<pollfd>& descriptors);
  void send_local_events();
  void apply(const Decision& decision);
  void execute(const Decision& decision);
  void reject(const Decision& decision);
  Call prepare(Entry& entry, const Decision& decision);
  void prepare_result(Entry& entry, Call& call, std::int64_t rows);
  void divide(Entry& entry, const Decision& decision, Call& call);
  void leave(Phase phase, const Status& status);
  void on_done(const std::string& name, Status status);
  void finish(Entry entry, Status status);
  std::optional<Entry> take_entry(const std::string& name);
  bool may_stop(Clock::time_point now);
  void wake();

  EngineParts parts_;
  std::optional<CallThread> calls_;  ///< runs the backend
  UniqueFd wake_;                    ///< an eventfd
  std::thread thread_;
  Mutex shutdown_mutex_;  ///< one shutdown() at a time

  mutable Mutex mutex_;
  ConditionVariable phase_changed_;
  Phase phase_ GUARDED_BY(mutex_) = Phase::kRunning;
  Status end_ GUARDED_BY(mutex_);  ///< why it is not running
  Entries entries_ GUARDED_BY(mutex_);
  /// Entries that the backend works on, and one until it is connected: a rank that leaves must not cut either off.
  std::size_t running_ GUARDED_BY(mutex_) = 1;
  std::vector<Request> submitted_ GUARDED_BY(mutex_);  ///< not yet sent
  std::vector<Status> failures_ GUARDED_BY(mutex_);    ///< of the backend, not yet sent
  bool stop_ GUARDED_BY(mutex_) = false;

  // The engine thread's own.
  bool goodbye_sent_ = false, drained_sent_ = false;
  std::optional<Clock::time_point> stop_deadline_;
};

}  // namespace runjob::runtime
