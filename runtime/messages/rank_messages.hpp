#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <poll.h>
#include <thread>
#include <vector>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "base/status.hpp"
#include "runtime/collectives/shm/tuning/spin_time.hpp"
#include "runtime/messages/message_exchange.hpp"
#include "runtime/operations/handle_table.hpp"

namespace runjob::runtime {

/// The process set of a message.
struct MessageSet {
  int id = 0;
  std::vector<int> ranks;  ///< of the job, in the order of the set
};

/// Messages between two ranks of a job, without negotiation: see runjob_send_async().
///
/// Progress  The thread that waits for a message moves all of them, so that no other thread has to be woken for it.
///           While none waits and some are in flight, the thread "runjob-message" does, a millisecond later. It starts
///           with the first message.
/// Threads   any.
/// Errors    those of begin() are Error(kInvalidArgument); all others are outcomes.
class RankMessages : public OperationOwner {
 public:
  static constexpr int kAnyPeer = MessageOperation::kAnyPeer;

  explicit RankMessages(MessageTerms terms);
  ~RankMessages() override;  ///< shuts down
  RankMessages(const RankMessages&) = delete;
  RankMessages& operator=(const RankMessages&) = delete;

  /// `peer`: an index in the set. The buffer is lent until the completion is finished.
  std::shared_ptr<Completion> send(const void* buffer, std::size_t bytes, int peer, std::int64_t tag,
                                   const MessageSet& set);
  /// `peer` may be kAnyPeer.
  std::shared_ptr<Completion> receive(void* buffer, std::size_t bytes, int peer, std::int64_t tag,
                                      const MessageSet& set);
  std::optional<Status> wait(const Completion& completion,
                             std::optional<std::chrono::steady_clock::time_point> deadline) override;

  /// A set was added, whose id may be that of a removed one. All ranks call it in the same order.
  void begin_set(int id);
  /// Ends the operations of a set on this rank.
  void end_set(int id, const Status& why);

  /// Other ranks wait to be accepted. Without this they are, while a message of this rank is in flight.
  void accept_visitors();
  /// The job has come to this phase: see Engine::on_phase().
  void someone_leaves();
  void nobody_explains();
  void end(const Status& why);
  /// This rank leaves: its operations end with `why`, which the others get too. Waits at most kMostFlush for the bytes
  /// that they have not taken yet.
  void shutdown(const Status& why);
  static constexpr std::chrono::milliseconds kMostFlush{500};

 private:
  using Clock = MessageExchange::Clock;
  using Deadline = std::optional<Clock::time_point>;
  /// What moves the messages: nothing, a thread that waits for one, or the thread "runjob-message".
  enum class Mover { kNone, kWaiter, kThread };

  std::shared_ptr<Completion> begin(MessageOperation operation, int peer, std::int64_t tag, const MessageSet& set);
  std::int64_t number_of(int set) const REQUIRES(mutex_);
  void run();
  void move_until(const Completion* until, Deadline deadline) REQUIRES(mutex_);
  void sleep(Deadline deadline, bool spins) REQUIRES(mutex_);
  void settle() REQUIRES(mutex_);
  void wake_thread() REQUIRES(mutex_);
  void leave() REQUIRES(mutex_);

  const std::function<void(const Status&)> on_broken_;
  const EventFd wake_;  ///< ends the sleep of the mover

  Mutex mutex_;
  ConditionVariable moved_;  ///< where threads wait while another one moves the messages
  ConditionVariable work_;   ///< where the thread "runjob-message" sleeps
  MessageExchange exchange_ GUARDED_BY(mutex_);
  std::map<int, std::int64_t> set_numbers_ GUARDED_BY(mutex_);  ///< by set: how many had been added when it was
  std::int64_t sets_ GUARDED_BY(mutex_) = 0;
  Mover mover_ GUARDED_BY(mutex_) = Mover::kNone;
  int waiters_ GUARDED_BY(mutex_) = 0;             ///< threads at `moved_`
  bool thread_sleeps_ GUARDED_BY(mutex_) = false;  ///< until it is woken
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  SpinTime spin_ GUARDED_BY(mutex_);
  std::vector<pollfd> descriptors_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace runjob::runtime
