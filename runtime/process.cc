#include "runtime/process.hpp"

#include <atomic>
#include <exception>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/screen_text.hpp"
#include "runtime/backends/backend_registry.hpp"
#include "runtime/control/fork_guard.hpp"
#include "runtime/job/mesh_setup.hpp"

namespace runjob::runtime {
namespace {

std::atomic<Process*> instance{nullptr};

/// The part of a failure's reason that the other ranks get.
constexpr std::size_t kMostReasonBytes = 400;

/// Forgets the parent's state in a forked child. The parent's threads do not exist in the child, and its locks may be
/// held for ever; so nothing of it is touched.
void forget_parent() {
  instance.store(nullptr, std::memory_order_relaxed);
}

/// Settings for a job that no launcher has started: nothing of it is the launcher's.
RuntimeConfig without_launcher(RuntimeConfig config, int rank) {
  config.rendezvous.reset();
  config.job_key_file.reset();
  config.launcher = {};
  config.elastic = false;
  config.rank = rank;
  return config;
}

/// A job that has failed may have left work on a GPU that does not end.
void check_gpus() {
  if (const std::string left = gpu_leftover(); !left.empty()) throw Error(Errc::kUnavailable, left);
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

void Process::init(const Environment& environment, const InitArguments& arguments) {
  const MutexLock one_at_a_time(lifecycle_mutex_);
  if (job()) return;
  check_gpus();
  RuntimeConfig config = read_runtime_config(environment);
  if (arguments.own) config = without_launcher(std::move(config), arguments.own->rank);
  config.dynamic_process_sets = config.dynamic_process_sets || arguments.dynamic_process_sets;
  config.has_process_sets = !arguments.process_sets.empty();
  const std::string sets =
      arguments.process_sets.empty() ? "none" : fmt::format("{}", fmt::join(arguments.process_sets, ", "));
  claim_.emplace(socket_directory(config), config.rank);
  std::shared_ptr<const Job> joined;
  try {
    joined = std::make_shared<const Job>(join(config, arguments, sets));
  } catch (...) {
    claim_.reset();
    throw;
  }
  {
    const MutexLock lock(mutex_);
    job_ = joined;
    config_ = config;
    failure_report_ = joined->failure_report;
  }
  if (joined->place.waiting) return;
  std::exception_ptr refused;
  for (const std::vector<int>& ranks : arguments.process_sets) {
    try {
      joined->process_sets->add(ranks);
    } catch (const Error&) {
      if (!refused) refused = std::current_exception();
    }
  }
  if (refused) std::rethrow_exception(refused);
}

Job Process::join(const RuntimeConfig& config, const InitArguments& arguments, const std::string& sets) {
  if (!arguments.own) return join_job(config, init_counts_, sets);
  ExchangeMeeting meeting(arguments.own->rank, arguments.own->size, arguments.own->host, arguments.own->exchange);
  return join_job_at(meeting, config, init_counts_, sets);
}

void Process::shutdown(Goodbye how) {
  const MutexLock one_at_a_time(lifecycle_mutex_);
  leave(how);
  claim_.reset();
}

void Process::leave(Goodbye how) {
  std::shared_ptr<const Job> leaving;
  std::string failure;
  {
    const MutexLock lock(mutex_);
    leaving = std::move(job_);
    job_ = nullptr;
    failure = std::exchange(failure_, {});
  }
  if (!leaving || leaving->place.waiting) return;
  const std::string self = fmt::format("rank {} on {}", leaving->place.rank, leaving->place.hostname);
  const Status why = failure.empty() ? goodbye_reason(self, how)
                                     : Status(Errc::kPeerLost, fmt::format("{} failed: {}", self, failure));
  leaving->process_sets->begin_shutdown(why);  // all sets at once, so that together they wait only once
  leaving->engine->begin_shutdown(why);
  leaving->messages->shutdown(why);
  leaving->process_sets->shutdown();
  leaving->engine->shutdown();
}

void Process::elastic_enter() {
  const MutexLock one_at_a_time(lifecycle_mutex_);
  const std::shared_ptr<const Job> current = job();
  if (!current) static_cast<void>(member_job());  // throws
  std::shared_ptr<NoticeWatch> watch;
  {
    const MutexLock lock(mutex_);
    if (!config_->elastic || watch_) return;
    watch = watch_ = NoticeWatch::start(*config_->rendezvous, config_->rank, config_->job_key_file);
  }
  if (current->place.waiting) return;
  watch->begin(current->place.generation);
  end_with_generation(*watch, *current);
}

void Process::elastic_meet(std::int64_t commit, const std::string& reason) {
  const MutexLock one_at_a_time(lifecycle_mutex_);
  const std::shared_ptr<const Job> current = job();
  if (!current) static_cast<void>(member_job());  // throws
  RuntimeConfig config;
  std::shared_ptr<NoticeWatch> watch;
  std::int64_t steps = -1;
  {
    const MutexLock lock(mutex_);
    config = *config_;
    watch = watch_;
    steps = std::exchange(steps_, -1);
  }
  if (!config.elastic) throw Error(Errc::kUsage, "this job is not elastic: start it with runjob --min-np");
  if (!watch) throw Error(Errc::kUsage, "a process enters an elastic job with runjob_elastic_enter() first");
  const std::string why = one_line(reason.substr(0, kMostReasonBytes));
  watch->leave();
  if (!why.empty()) {
    const MutexLock lock(mutex_);
    failure_ = why;  // the other ranks learn it
  }
  leave(Goodbye::kShutdown);
  check_gpus();
  const auto joined =
      std::make_shared<const Job>(join_next_generation(config, init_counts_, {commit, why, steps}, *watch));
  const MutexLock lock(mutex_);
  job_ = joined;
  failure_report_ = joined->failure_report;
}

void Process::elastic_steps(std::int64_t steps) {
  const MutexLock lock(mutex_);
  steps_ = steps;
}

NoticeWatch::Pending Process::elastic_pending() const {
  const std::shared_ptr<const Job> current = job();
  if (!current) static_cast<void>(member_job());  // throws
  std::shared_ptr<NoticeWatch> watch;
  {
    const MutexLock lock(mutex_);
    watch = watch_;
  }
  return watch ? watch->pending(current->place.generation) : NoticeWatch::Pending();
}

bool Process::is_elastic() const {
  const MutexLock lock(mutex_);
  return job_ && config_ && config_->elastic;
}

void Process::failing(const std::string& reason) {
  std::shared_ptr<FailureReport> report;
  {
    const MutexLock lock(mutex_);
    report = failure_report_;
  }
  if (report) report->failing(reason);
  const MutexLock lock(mutex_);
  if (job_ && failure_.empty()) failure_ = one_line(reason.substr(0, kMostReasonBytes));
}

std::shared_ptr<const Job> Process::job() const {
  const MutexLock lock(mutex_);
  return job_;
}

std::shared_ptr<const Job> Process::member_job() const {
  if (std::shared_ptr<const Job> current = job()) {
    if (!current->place.waiting) return current;
    throw Error(
        Errc::kUnavailable,
        "this process belongs to no generation of the elastic job yet: it can run collectives only inside of the "
        "function that it gives to elastic.run()");
  }
  throw Error(Errc::kNotInitialized, "runjob is not initialized: call init() first");
}

void Process::report_loss(const Status& outcome) const {
  if (outcome.code() != Errc::kPeerLost && outcome.code() != Errc::kAborted && outcome.code() != Errc::kConnect) return;
  const std::shared_ptr<const Job> current = job();
  if (current && current->failure_report) current->failure_report->lost_a_rank(outcome.message());
}

}  // namespace runjob::runtime
