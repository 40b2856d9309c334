#include "runtime/messages/rank_messages.hpp"

#include <algorithm>
#include <pthread.h>
#include <signal.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

/// How long the thread leaves the messages to threads that may be about to wait.
constexpr std::chrono::milliseconds kNap{1};
/// After so many naps without work it sleeps until it is woken.
constexpr int kMostNaps = 10;
constexpr std::chrono::milliseconds kLongest{1000};  // a sleep without any deadline

}  // namespace

RankMessages::RankMessages(MessageTerms terms)
    : on_broken_(std::move(terms.on_broken)), exchange_(std::move(terms)), spin_(terms.spin) {}

RankMessages::~RankMessages() {
  shutdown(Status(Errc::kAborted, "the job is over"));
}

std::shared_ptr<Completion> RankMessages::send(const void* buffer, std::size_t bytes, int peer, std::int64_t tag,
                                               const MessageSet& set) {
  MessageOperation operation;
  operation.is_send = true;
  operation.buffer = static_cast<std::byte*>(const_cast<void*>(buffer));
  operation.bytes = bytes;
  return begin(std::move(operation), peer, tag, set);
}

std::shared_ptr<Completion> RankMessages::receive(void* buffer, std::size_t bytes, int peer, std::int64_t tag,
                                                  const MessageSet& set) {
  MessageOperation operation;
  operation.buffer = static_cast<std::byte*>(buffer);
  operation.bytes = bytes;
  return begin(std::move(operation), peer, tag, set);
}

std::shared_ptr<Completion> RankMessages::begin(MessageOperation operation, int peer, std::int64_t tag,
                                                const MessageSet& set) {
  const int size = static_cast<int>(set.ranks.size());
  const bool is_any = peer == kAnyPeer && !operation.is_send;
  if (!is_any && (peer < 0 || peer >= size))
    throw Error(Errc::kInvalidArgument, fmt::format("{} with tag {}: process set {} has {} ranks, and no rank {}",
                                                    operation.is_send ? "send" : "receive", tag, set.id, size, peer));
  operation.peer = is_any ? kAnyPeer : set.ranks[static_cast<std::size_t>(peer)];
  operation.ranks = std::make_shared<const std::vector<int>>(set.ranks);
  const auto completion = operation.completion = std::make_shared<Completion>();
  const auto shared = std::make_shared<MessageOperation>(std::move(operation));
  const MutexLock lock(mutex_);
  shared->key = {number_of(set.id), tag};
  exchange_.begin(shared);
  settle();
  if (exchange_.is_busy()) wake_thread();
  return completion;
}

std::int64_t RankMessages::number_of(int set) const {
  const auto found = set_numbers_.find(set);
  return (found == set_numbers_.end() ? 0 : found->second << 32) | set;
}

/// Sees to it that something moves the messages.
void RankMessages::wake_thread() {
  if (is_stopping_) return;
  if (mover_ != Mover::kNone) return wake_.set();  // there may be more to poll
  if (thread_.joinable()) {
    if (thread_sleeps_) work_.notify_one();
    return;
  }
  sigset_t all, before;
  sigfillset(&all);  // the program's signals are for its own threads
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void RankMessages::run() {
  ::pthread_setname_np(::pthread_self(), "runjob-message");
  const MutexLock lock(mutex_);
  int naps = 0;
  bool has_waited = false;
  while (!is_stopping_) {
    const bool is_needed = exchange_.is_busy() && mover_ == Mover::kNone && waiters_ == 0;
    if (is_needed && has_waited) {
      mover_ = Mover::kThread;
      move_until(nullptr, std::nullopt);
      leave();
      naps = 0;
    }
    has_waited = is_needed;
    if (is_needed || ++naps < kMostNaps) {
      work_.wait_until(mutex_, Clock::now() + kNap);
      continue;
    }
    thread_sleeps_ = true;
    work_.wait(mutex_);
    thread_sleeps_ = false;
    naps = 0;
  }
}

/// Another thread may move the messages.
void RankMessages::leave() {
  mover_ = Mover::kNone;
  if (waiters_ > 0) {
    moved_.notify_all();
  } else if (exchange_.is_busy() && thread_sleeps_) {
    work_.notify_one();
  }
}

std::optional<Status> RankMessages::wait(const Completion& completion, Deadline deadline) {
  if (completion.done()) return completion.wait(std::nullopt);
  {
    const MutexLock lock(mutex_);
    while (!completion.done() && !is_stopping_) {
      if (deadline && Clock::now() >= *deadline) break;
      if (mover_ == Mover::kNone) {
        mover_ = Mover::kWaiter;
        move_until(&completion, deadline);
        leave();
        continue;
      }
      ++waiters_;
      if (mover_ == Mover::kThread) wake_.set();  // it leaves them to this thread
      moved_.wait_until(mutex_, deadline.value_or(Clock::now() + kLongest));
      --waiters_;
    }
  }
  if (!completion.done() && deadline && Clock::now() >= *deadline) return std::nullopt;
  return completion.wait(std::nullopt);  // at the latest shutdown() has finished it
}

/// Moves all messages. `until`: until this operation is over; null: as long as there is anything to move and no other
/// thread waits.
void RankMessages::move_until(const Completion* until, Deadline deadline) {
  Clock::time_point idle_since = Clock::now();
  bool has_slept = false;
  while (!is_stopping_) {
    if (until != nullptr ? until->done() : waiters_ > 0 || !exchange_.is_busy()) break;
    const Clock::time_point now = Clock::now();
    if (deadline && now >= *deadline) break;
    const bool spins = until != nullptr && now - idle_since < spin_.time();
    sleep(deadline, spins);
    if (!exchange_.move(std::span(descriptors_).subspan(1), Clock::now())) {
      has_slept |= !spins;
      settle();
      continue;
    }
    settle();
    if (has_slept) {
      spin_.reached_after_sleep(Clock::now() - idle_since);
    } else {
      spin_.reached_while_spinning();
    }
    idle_since = Clock::now();
    has_slept = false;
  }
}

/// Sleeps until a connection has something, or there is another reason to look; without the lock.
void RankMessages::sleep(Deadline deadline, bool spins) {
  descriptors_.assign(1, {wake_.get(), POLLIN, 0});
  exchange_.watch(descriptors_);
  const Clock::time_point now = Clock::now();
  Clock::time_point due = std::min(now + kLongest, deadline.value_or(Clock::time_point::max()));
  if (const Deadline of_exchange = exchange_.deadline(now)) due = std::min(due, *of_exchange);
  const auto left = spins ? std::chrono::nanoseconds(0) : std::max<std::chrono::nanoseconds>(due - now, {});
  const timespec time{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  std::vector<pollfd> descriptors = std::move(descriptors_);
  mutex_.unlock();
  const int count = ::ppoll(descriptors.data(), descriptors.size(), &time, nullptr);
  mutex_.lock();
  if (count < 0) {
    for (pollfd& each : descriptors) each.revents = 0;  // interrupted by a signal
  }
  if (descriptors.front().revents != 0) wake_.clear();
  descriptors_ = std::move(descriptors);
}

/// Finishes the operations that are over, without the lock: their callbacks may take any time.
void RankMessages::settle() {
  std::vector<MessagesInFlight::Finished> finished = exchange_.take_finished();
  const std::vector<Status> broken = exchange_.take_broken();
  if (finished.empty() && broken.empty()) return;
  mutex_.unlock();
  for (MessagesInFlight::Finished& each : finished)
    each.completion->finish(std::move(each.status), std::move(each.result));
  for (const Status& why : broken) {
    if (on_broken_) on_broken_(why);
  }
  mutex_.lock();
  if (waiters_ > 0) moved_.notify_all();
}

void RankMessages::begin_set(int id) {
  const MutexLock lock(mutex_);
  set_numbers_[id] = ++sets_;
}

void RankMessages::end_set(int id, const Status& why) {
  const MutexLock lock(mutex_);
  exchange_.end_set(number_of(id), why);
  settle();
  if (exchange_.is_busy()) wake_thread();
}

void RankMessages::accept_visitors() {
  const MutexLock lock(mutex_);
  if (is_stopping_) return;
  exchange_.accept();
  wake_thread();
}

void RankMessages::someone_leaves() {
  const MutexLock lock(mutex_);
  exchange_.someone_leaves();
  settle();
  if (exchange_.is_busy()) wake_thread();
}

void RankMessages::nobody_explains() {
  const MutexLock lock(mutex_);
  exchange_.nobody_explains();
  if (mover_ != Mover::kNone) wake_.set();
}

void RankMessages::end(const Status& why) {
  const MutexLock lock(mutex_);
  exchange_.end(why);
  settle();
  if (mover_ != Mover::kNone) wake_.set();
}

void RankMessages::shutdown(const Status& why) {
  {
    const MutexLock lock(mutex_);
    if (is_stopping_) return;
    is_stopping_ = true;
    wake_.set();
    work_.notify_one();
    moved_.notify_all();
    while (mover_ != Mover::kNone) moved_.wait_until(mutex_, Clock::now() + kNap);
    exchange_.end_all(why);
    settle();
    exchange_.say_goodbye(why);
    const Clock::time_point due = Clock::now() + kMostFlush;
    while (exchange_.has_unsent() && Clock::now() < due) {
      sleep(due, /*spins=*/false);
      exchange_.move(std::span(descriptors_).subspan(1), Clock::now());
    }
    exchange_.end(why);
    settle();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace runjob::runtime
