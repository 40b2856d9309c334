#include "runtime/collectives/nccl/in_flight_works.hpp"

#include <algorithm>
#include <pthread.h>
#include <utility>

#include "base/error.hpp"

namespace runjob::runtime::nccl {
namespace {

using Clock = std::chrono::steady_clock;
/// Between two looks; and how long the thread goes on looking after the last work, because a wake-up costs the
/// launching thread some microseconds.
constexpr std::chrono::milliseconds kLook{1}, kLinger{1000};

}  // namespace

InFlightWorks::InFlightWorks(CheckHealth check_health, OnFailure on_failure)
    : check_health_(std::move(check_health)), on_failure_(std::move(on_failure)) {}

InFlightWorks::~InFlightWorks() {
  stop();
}

void InFlightWorks::stop() {
  {
    const MutexLock lock(mutex_);
    is_ended_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void InFlightWorks::add(std::shared_ptr<cuda::Work> work) {
  const MutexLock lock(mutex_);
  if (failure_) work->fail_launched(*failure_);
  works_.push_back(std::move(work));
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  if (is_asleep_) changed_.notify_all();
}

void InFlightWorks::note_failure(const Status& why) {
  const MutexLock lock(mutex_);
  if (first_failed_.ok()) first_failed_ = why;
}

void InFlightWorks::fail(const Status& why) {
  const MutexLock lock(mutex_);
  if (!failure_) failure_ = why;
  for (const auto& work : works_) work->fail(why);
  changed_.notify_all();
}

void InFlightWorks::end(const Status& why) {
  stop();
  fail(why);
  for (const auto& work : works()) work->notify_if_done();
}

bool InFlightWorks::drain(std::chrono::milliseconds most) {
  const auto deadline = Clock::now() + most;
  const MutexLock lock(mutex_);
  while (!works_.empty()) {
    if (changed_.wait_until(mutex_, deadline) == std::cv_status::timeout) return works_.empty();
  }
  return true;
}

/// The thread may not have looked at works that are done.
std::optional<Status> InFlightWorks::outcome() const {
  Status failed;
  for (const auto& work : works()) {
    const std::optional<Status> outcome = work->outcome();
    if (!outcome) return std::nullopt;
    if (failed.ok()) failed = *outcome;
  }
  const MutexLock lock(mutex_);
  return first_failed_.ok() ? failed : first_failed_;
}

std::vector<std::shared_ptr<cuda::Work>> InFlightWorks::works() const {
  const MutexLock lock(mutex_);
  return works_;
}

void InFlightWorks::run() {
  ::pthread_setname_np(::pthread_self(), "runjob-gpu");
  auto last = Clock::now();
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (is_ended_) return;
      if (!works_.empty()) last = Clock::now();
      is_asleep_ = works_.empty() && Clock::now() - last >= kLinger;
      if (is_asleep_) {
        while (!is_ended_ && works_.empty()) changed_.wait(mutex_);
      } else {
        changed_.wait_until(mutex_, Clock::now() + kLook);
      }
      is_asleep_ = false;
    }
    look();
  }
}

void InFlightWorks::look() {
  {
    const MutexLock lock(mutex_);
    looked_at_.reserve(works_.capacity());
    looked_at_ = works_;
  }
  done_.reserve(looked_at_.capacity());
  if (!looked_at_.empty()) look_at(looked_at_);
  looked_at_.clear();
}

/// With no lock held, because callbacks may come back. A group that is launched in parts has its work in the list more
/// than once.
void InFlightWorks::look_at(std::span<const std::shared_ptr<cuda::Work>> works) {
  done_.clear();
  Status failed;
  cuda::Work* first_at_work = nullptr;
  for (const auto& work : works) {
    if (work->notify_if_done()) {
      done_.push_back(work.get());
      if (failed.ok()) failed = work->outcome().value_or(Status());
    } else if (first_at_work == nullptr) {
      first_at_work = work.get();
    }
  }
  if (first_at_work != nullptr) first_at_work->note_begun();
  if (!failed.ok()) report(failed);  // before it counts as done
  {
    const MutexLock lock(mutex_);
    if (first_failed_.ok()) first_failed_ = failed;
    std::erase_if(works_,
                  [&](const auto& work) { return std::find(done_.begin(), done_.end(), work.get()) != done_.end(); });
    if (works_.empty()) changed_.notify_all();
  }
  if (first_at_work == nullptr) return;
  try {
    if (!has_failed_) check_health_();
  } catch (const Error& error) {
    report(Status(error));
  }
}

void InFlightWorks::report(const Status& why) {
  if (!std::exchange(has_failed_, true)) on_failure_(why);
}

}  // namespace runjob::runtime::nccl
