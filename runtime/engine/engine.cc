#include "runtime/engine/engine.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/engine/timeline_observer.hpp"

namespace runjob::runtime {
namespace {

/// Of a plan's bucket: what is submitted in a burst goes at once, and what follows the last one of a step takes no longer than this.
constexpr std::size_t kBucketBytes = 4u << 20;

EngineParts complete(EngineParts parts) {
  if (parts.timeline) return parts;
  auto off = std::make_shared<Timeline>(parts.rank, std::vector<std::string>());
  parts.timeline = std::make_unique<EngineTimeline>(std::move(off), parts.members.process_set());
  return parts;
}

}  // namespace

Engine::Engine(EngineParts parts)
    : parts_(complete(std::move(parts))),
      size_(static_cast<int>(parts_.members.size())),
      self_(rank_text(parts_.rank, parts_.members)),
      carries_records_(parts_.rank != 0 && parts_.members.process_set() == 0),
      window_(parts_.cycle_time, parts_.backend->fusion_advice().buffer_bytes),
      stalls_(parts_.stall_limits, parts_.members),
      next_inspection_(stalls_.next(Clock::now())) {
  if (carries_records_) parts_.timeline->shared().on_messages([this] { poll_.wake(); });
  watcher_ = std::thread([this] { watch_job(); });
}

Engine::~Engine() {
  shutdown();
}

Status Engine::connect(const std::vector<std::string>& addresses) {
  constexpr auto kVerdict = 2 * Coordinator::kVerdictGrace;
  Status status = parts_.backend->connect(addresses);
  const MutexLock lock(mutex_);
  is_connecting_ = false;
  if (phase_ != Phase::kRunning) poll_.wake();
  if (status.ok()) {
    rounds_ = parts_.backend->rounds();
    has_rounds_ = rounds_ != nullptr;
    runner_.emplace([this](const Call& call) { return parts_.backend->run(call); }, *parts_.timeline, parts_.rank,
                    size_, parts_.fusion, parts_.backend->fusion_advice(), parts_.backend->symmetric_heap());
    observer_ = std::make_unique<TimelineObserver>(*parts_.timeline, parts_.members);
    if (has_rounds_) {
      const RoundNegotiation::Settings settings{parts_.cache_capacity, kBucketBytes};
      exchange_.emplace(*rounds_, parts_.rank, parts_.members, settings, observer_.get());
    }
    worker_ = std::thread([this] { work(); });
    return status;
  }
  failures_.push_back(status);
  poll_.wake();
  const auto deadline = Clock::now() + kVerdict;
  while (phase_ == Phase::kRunning) {
    if (phase_changed_.wait_until(mutex_, deadline) == std::cv_status::timeout) return status;
  }
  return end_;
}

void Engine::check(Submission& submission) const {
  Signature& signature = submission.signature;
  if (signature.kind == Kind::kBroadcast && signature.process_set != 0) {
    const std::optional<int> root = parts_.members.index_of(signature.root);
    if (!root) {
      throw Error(Errc::kInvalidArgument, fmt::format("{}: root rank {} is not in process set {}",
                                                      operation_text(submission.name, signature.kind, 0),
                                                      signature.root, signature.process_set));
    }
    signature.root = *root;
  }
  if (signature.kind == Kind::kAlltoall && signature.splits.empty())
    signature.splits = even_splits(submission.name, signature.shape, size_);
  check_operation(submission.name, signature, size_);
}

/// Errors  Error, why the operation is refused.
void Engine::check_in_flight(const Submission& submission) const {
  if (phase_ != Phase::kRunning || stop_) end_.throw_if_failed();
  const bool is_at_once = name_at_once_ && *name_at_once_ == submission.name;
  if (!is_at_once && !operations_.contains(submission.name)) return;
  throw Error(Errc::kInvalidArgument, fmt::format("{}: an operation of this name is still in flight on {}",
                                                  operation_text(submission.name, submission.signature), self_));
}

std::shared_ptr<Completion> Engine::insert(Submission submission, bool is_said) {
  if (phase_ == Phase::kEnded) {
    auto completion = std::make_shared<Completion>();
    completion->finish(end_);
    return completion;
  }
  if (!is_said) {
    submitted_.push_back({submission.name, submission.signature, /*begins=*/has_seen_end_.exchange(false)});
    if (window_.is_used()) window_.submitted(submission.signature, Clock::now());
  }
  parts_.timeline->submitted(submission.name, submission.signature.kind);
  return operations_.insert(std::move(submission));
}

/// Sees to it that somebody says to the others what was submitted: the worker, when it returns true. A thread that is woken runs
/// at once, where there are as many ranks as processors: without a lock that it would sleep for.
bool Engine::announce() {
  const bool is_first = submitted_.size() == 1, must_wait = window_.is_used() && window_.closes(Clock::now());
  if (must_wait && !is_first) return false;  // whoever has slept since the first one knows until when
  if (!has_rounds_) {
    if (is_first || window_.is_used()) poll_.wake();
  } else if (awaits_round_) {
    rounds_->nudge();
  }
  return has_rounds_ && !driving_ && has_work();
}

/// What is to be said now.
std::vector<Request> Engine::take_submitted() {
  if (window_.is_used()) window_.clear();
  return std::exchange(submitted_, {});
}

/// For as long as somebody waits, nothing that was submitted here waits for more.
void Engine::begin_waiting() {
  if (parts_.cycle_time.count() == 0) return;
  const MutexLock lock(mutex_);
  window_.begin_waiting();
  if (!has_rounds_) {
    poll_.wake();
  } else if (awaits_round_) {
    rounds_->nudge();
  }
}

void Engine::end_waiting() {
  if (parts_.cycle_time.count() == 0) return;
  const MutexLock lock(mutex_);
  window_.end_waiting();
}

std::shared_ptr<Completion> Engine::submit(Submission submission) {
  check(submission);
  std::shared_ptr<Completion> completion;
  bool wakes_worker = false;
  {
    const MutexLock lock(mutex_);
    check_in_flight(submission);
    completion = insert(std::move(submission), /*is_said=*/false);
    wakes_worker = announce();
  }
  if (wakes_worker) work_changed_.notify_one();
  return completion;
}

/// Then the calling thread is the driver.
bool Engine::may_run_at_once(const SubmissionView& submission) {
  if (phase_ != Phase::kRunning || stop_ || parts_.timeline->is_on()) return false;
  if (!operations_.empty() || !submitted_.empty() || !become_driver()) return false;
  name_at_once_ = submission.name;
  return true;
}

std::shared_ptr<Completion> Engine::run(const SubmissionView& submission, Deadline deadline, Status& status,
                                        Completion::Result& result) {
  bool at_once = false;
  {
    const MutexLock lock(mutex_);
    at_once = may_run_at_once(submission);
  }
  if (!at_once) return run(to_submission(submission), deadline, status);
  const bool is_done = run_at_once(submission, deadline, status, result);
  std::shared_ptr<Completion> completion;
  {
    const MutexLock lock(mutex_);
    name_at_once_.reset();
    has_seen_end_.store(true, std::memory_order_relaxed);
    if (is_done || !exchange_->is_in_round()) {
      stop_driving();
    } else {
      Submission said = to_submission(submission);
      check(said);
      completion = insert(std::move(said), /*is_said=*/true);
    }
  }
  if (is_done) return nullptr;
  if (!completion) return run(to_submission(submission), deadline, status);
  drive_until(*completion, deadline);
  status = wait(*completion, deadline).value_or(Status());
  return completion;
}

std::shared_ptr<Completion> Engine::run(Submission submission, Deadline deadline, Status& status) {
  check(submission);
  std::shared_ptr<Completion> completion;
  bool drives = false, wakes_worker = false;
  {
    const MutexLock lock(mutex_);
    check_in_flight(submission);
    drives = become_driver();
    completion = insert(std::move(submission), /*is_said=*/false);
    if (!drives) wakes_worker = announce();
  }
  if (wakes_worker) work_changed_.notify_one();
  if (drives) drive_until(*completion, deadline);
  status = wait(*completion, deadline).value_or(Status());
  return completion;
}

std::optional<Status> Engine::wait(const Completion& completion, Deadline deadline) {
  has_seen_end_.store(true, std::memory_order_relaxed);
  if (completion.done()) return completion.wait(std::nullopt);
  begin_waiting();
  bool drives = false;
  {
    const MutexLock lock(mutex_);
    drives = become_driver();
    if (!drives) {
      awaited_.push_back(&completion);
      if (awaits_round_ && bucket_lacks_ != 0) rounds_->nudge();
    }
  }
  if (drives) drive_until(completion, deadline);
  std::optional<std::chrono::duration<double>> timeout;
  if (deadline)
    timeout = std::max(std::chrono::duration<double>(0), std::chrono::duration<double>(*deadline - Clock::now()));
  std::optional<Status> outcome = completion.wait(timeout);
  if (!drives) {
    const MutexLock lock(mutex_);
    awaited_.erase(std::find(awaited_.begin(), awaited_.end(), &completion));
  }
  end_waiting();
  return outcome;
}

Statistics Engine::statistics() const {
  const MutexLock lock(mutex_);
  Statistics result;
  if (!parts_.control) return result;
  result.control_messages = parts_.control->messages_sent();
  if (!has_rounds_) return result;
  result.rounds = exchange_->rounds();
  result.rounds_with_data = exchange_->rounds_with_data();
  result.planned_rounds = exchange_->planned_rounds();
  const Rounds::Traffic traffic = rounds_->traffic();
  result.host_messages = traffic.messages;
  result.host_bytes = traffic.bytes;
  return result;
}

void Engine::shutdown() {
  const MutexLock one_at_a_time(shutdown_mutex_);
  if (!watcher_.joinable()) return;
  begin_shutdown();
  watcher_.join();
  Status end;
  bool cuts_off = false;
  {
    const MutexLock lock(mutex_);
    phase_ = Phase::kEnded;
    end = end_;
    cuts_off = is_working() || !has_rounds_;
    worker_stop_ = true;
    work_changed_.notify_all();
    if (has_rounds_) rounds_->leave();
  }
  if (cuts_off) parts_.backend->abort(end);
  if (worker_.joinable()) worker_.join();
  std::vector<InFlight::Entry> left;
  {
    const MutexLock lock(mutex_);
    while (driving_) driver_gone_.wait(mutex_);
    has_rounds_ = false;
    left = operations_.take_all();
  }
  parts_.backend.reset();
  for (InFlight::Entry& entry : left) finish(std::move(entry), end);
  {
    const MutexLock lock(mutex_);  // statistics() may look at it
    parts_.control.reset();
  }
  if (parts_.members.process_set() == 0) parts_.timeline->shared().close();
}

void Engine::begin_shutdown(Status why) {
  const MutexLock lock(mutex_);
  if (std::exchange(stop_, true)) return;
  if (end_.ok()) end_ = why.ok() ? Status(Errc::kAborted, self_ + " called shutdown()") : why;
  farewell_ = std::move(why);
  poll_.wake();
}

bool Engine::fail(Status why) {
  const MutexLock lock(mutex_);
  if (phase_ != Phase::kRunning || stop_) return false;
  set_failures_.push_back(std::move(why));
  poll_.wake();
  return true;
}

void Engine::end(Status why) {
  const MutexLock lock(mutex_);
  ended_outside_ = std::move(why);
  poll_.wake();
}

void Engine::on_failure(std::function<bool(const Status&)> tell) {
  Status failure;
  {
    const MutexLock lock(mutex_);
    failure = failure_;
    if (failure.ok()) tell_failure_ = std::move(tell);
  }
  if (!failure.ok()) static_cast<void>(tell(failure));
}

}  // namespace runjob::runtime
