#include "runtime/process.hpp"

#include <atomic>

#include "base/error.hpp"
#include "runtime/engine/fork_guard.hpp"

namespace runjob::runtime {
namespace {

std::atomic<Process*> instance{nullptr};

/// The parent's threads do not exist in the child, and its locks may be held for ever: leave all of it alone.
void forget_parent() {
  instance.store(nullptr, std::memory_order_relaxed);
}

}  // namespace

Process& Process::current() {
  Process* found = instance.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  fork_guard::install(forget_parent);
  auto fresh = std::make_unique<Process>();
  if (instance.compare_exchange_strong(found, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *found;
}

void Process::init(const Environment& environment) {
  const MutexLock one_at_a_time(lifecycle_mutex_);
  if (job()) return;
  auto joined = std::make_shared<const Job>(join_job(read_runtime_config(environment), init_counts_));
  const MutexLock lock(mutex_);
  job_ = std::move(joined);
}

void Process::shutdown() {
  const MutexLock one_at_a_time(lifecycle_mutex_);
  std::shared_ptr<const Job> leaving;
  {
    const MutexLock lock(mutex_);
    leaving = std::move(job_);
    job_ = nullptr;
  }
  if (leaving) leaving->engine->shutdown();
}

std::shared_ptr<const Job> Process::job() const {
  const MutexLock lock(mutex_);
  return job_;
}

Engine& Process::engine(const std::shared_ptr<const Job>& job) const {
  if (!job) throw Error(Errc::kNotInitialized, "runjob is not initialized: call init() first");
  return *job->engine;
}

}  // namespace runjob::runtime
