#include "runtime/process.hpp"

#include <atomic>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "runtime/control/fork_guard.hpp"

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

void Process::init(const Environment& environment, const Wish& wish) {
  const MutexLock one_at_a_time(lifecycle_mutex_);
  if (job()) return;
  RuntimeConfig config = read_runtime_config(environment);
  config.dynamic_process_sets = config.dynamic_process_sets || wish.dynamic_process_sets;
  const std::string sets = wish.process_sets.empty() ? "none" : fmt::format("{}", fmt::join(wish.process_sets, ", "));
  const auto joined = std::make_shared<const Job>(join_job(config, init_counts_, sets));
  {
    const MutexLock lock(mutex_);
    job_ = joined;
  }
  std::optional<Error> refused;
  for (const std::vector<int>& ranks : wish.process_sets) {
    try {
      joined->process_sets->add(ranks);
    } catch (const Error& error) {
      if (!refused) refused = error;
    }
  }
  if (refused) throw *refused;
}

void Process::shutdown() {
  const MutexLock one_at_a_time(lifecycle_mutex_);
  std::shared_ptr<const Job> leaving;
  {
    const MutexLock lock(mutex_);
    leaving = std::move(job_);
    job_ = nullptr;
  }
  if (!leaving) return;
  leaving->process_sets->begin_shutdown();  // all at once: they share the second
  leaving->engine->begin_shutdown();
  leaving->process_sets->shutdown();
  leaving->engine->shutdown();
}

std::shared_ptr<const Job> Process::job() const {
  const MutexLock lock(mutex_);
  return job_;
}

std::shared_ptr<const Job> Process::member_job() const {
  if (std::shared_ptr<const Job> current = job()) return current;
  throw Error(Errc::kNotInitialized, "runjob is not initialized: call init() first");
}

void Process::report_loss(const Status& outcome) const {
  if (outcome.code() != Errc::kPeerLost && outcome.code() != Errc::kAborted) return;
  const std::shared_ptr<const Job> current = job();
  if (current && current->failure_report) current->failure_report->lost_a_rank(outcome.message());
}

}  // namespace runjob::runtime
