#include "runtime/operations/handle_table.hpp"

#include <utility>

#include "base/error.hpp"

namespace runjob::runtime {

void Completion::finish(Status status, Result result, std::shared_ptr<DeviceWork> work) {
  std::function<void()> notify;  // called without the lock
  {
    const MutexLock lock(mutex_);
    status_ = std::move(status);
    result_ = std::move(result);
    work_ = std::move(work);
    notify = std::exchange(notify_, nullptr);
    done_.store(true, std::memory_order_release);
  }
  finished_.notify_all();  // without the lock, which a waiter that runs at once would only sleep for again
  if (notify) pass_on(std::move(notify));
}

/// Calls `notify` once the device is done too.
void Completion::pass_on(std::function<void()> notify) {
  if (work_) return work_->on_done(std::move(notify));
  notify();
}

void Completion::on_finish(std::function<void()> notify) {
  {
    const MutexLock lock(mutex_);
    if (notify_) throw Error(Errc::kInvalidArgument, "the operation has a callback already");
    if (!done()) notify_ = std::exchange(notify, nullptr);
  }
  if (notify) pass_on(std::move(notify));
}

std::optional<Status> Completion::wait_for_end(DeviceWork::Deadline deadline) const {
  std::optional<std::chrono::duration<double>> timeout;
  if (deadline) timeout = *deadline - std::chrono::steady_clock::now();
  std::optional<Status> outcome = wait(timeout);
  return outcome && outcome->ok() && work_ ? work_->wait(deadline) : outcome;
}

std::optional<Status> Completion::wait(std::optional<std::chrono::duration<double>> timeout) const {
  constexpr std::chrono::duration<double> kLongest = std::chrono::hours(24 * 365);  // far inside what a clock adds
  if (done()) return status_;
  const MutexLock lock(mutex_);
  if (timeout && *timeout < kLongest) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(*timeout);
    while (!done()) {
      if (finished_.wait_until(mutex_, deadline) == std::cv_status::timeout && !done()) return std::nullopt;
    }
  }
  while (!done()) finished_.wait(mutex_);
  return status_;
}

const Completion::Result& Completion::result() const {
  return result_;
}

std::int64_t HandleTable::add(std::shared_ptr<Completion> completion, std::weak_ptr<OperationOwner> owner) {
  const MutexLock lock(mutex_);
  entries_.emplace(next_, Entry{std::move(completion), std::move(owner)});
  return next_++;
}

std::shared_ptr<Completion> HandleTable::find(std::int64_t handle) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(handle);
  return found == entries_.end() ? nullptr : found->second.completion;
}

std::shared_ptr<OperationOwner> HandleTable::owner(std::int64_t handle) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(handle);
  return found == entries_.end() ? nullptr : found->second.owner.lock();
}

void HandleTable::release(std::int64_t handle) {
  std::shared_ptr<Completion> last;  // destroyed outside the lock: it may hold a large result
  const MutexLock lock(mutex_);
  const auto found = entries_.find(handle);
  if (found == entries_.end()) return;
  last = std::move(found->second.completion);
  entries_.erase(found);
}

}  // namespace runjob::runtime
