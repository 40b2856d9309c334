#include "runtime/engine/engine.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/life/goodbye.hpp"
#include "runtime/operations/run_operation.hpp"

namespace runjob::runtime {
namespace {

/// The inputs and outputs of all tensors that have elements. An output may be null.
std::vector<DeviceBuffer> buffers_of(const Submission& submission) {
  std::vector<DeviceBuffer> buffers;
  const auto is_empty = [](const Shape& shape) { return element_count(shape) == 0; };
  const auto add = [&](const void* input, const void* output, std::size_t tensor) {
    if (input != nullptr) buffers.push_back({input, tensor});
    if (output != nullptr && output != input) buffers.push_back({output, tensor});
  };
  if (submission.signature.group.empty()) {
    if (!is_empty(submission.signature.shape)) add(submission.input, submission.output, 0);
    return buffers;
  }
  for (std::size_t i = 0; i < submission.group.size(); ++i) {
    if (!is_empty(submission.signature.group[i].shape)) add(submission.group[i].input, submission.group[i].output, i);
  }
  return buffers;
}

}  // namespace

Engine::Engine(EngineParts parts)
    : state_(std::move(parts)), execution_(state_), driver_(state_, execution_), watcher_(state_, execution_) {
  watcher_.on_given_up([this](int process_set) { return announce_end_of_set(process_set); });
  watcher_.start();
}

Engine::~Engine() {
  shutdown();
}

Status Engine::connect(const std::vector<std::string>& addresses) {
  constexpr auto kVerdict = 2 * Coordinator::kVerdictGrace;
  state_.parts.backends->on_failure([this](const Status& why) {
    const MutexLock lock(state_.mutex);
    if (state_.phase.is_open()) state_.report(LifeReport::Type::kFailed, why);
  });
  Status status = state_.parts.backends->host().connect(addresses);
  if (status.ok()) driver_.start();
  const MutexLock lock(state_.mutex);
  state_.phase.enter(PhaseEvent::kConnected, {});
  state_.poll.wake();  // decisions may have waited for this
  if (status.ok()) return status;
  state_.report(LifeReport::Type::kFailed, status);
  const auto deadline = Clock::now() + kVerdict;
  while (state_.phase.is_open()) {
    if (state_.changed.wait_until(state_.mutex, deadline) == std::cv_status::timeout) return status;
  }
  return state_.phase.reason();
}

void Engine::check(Submission& submission) const {
  Signature& signature = submission.signature;
  if (signature.kind == Kind::kBroadcast && signature.process_set != 0) {
    const std::optional<int> root = state_.parts.members.index_of(signature.root);
    if (!root) {
      throw Error(Errc::kInvalidArgument, fmt::format("{}: root rank {} is not in process set {}",
                                                      operation_text(submission.name, signature.kind, 0),
                                                      signature.root, signature.process_set));
    }
    signature.root = *root;
  }
  if (signature.kind == Kind::kAlltoall && signature.splits.empty())
    signature.splits = even_splits(submission.name, signature.shape, state_.size);
  check_operation(submission.name, signature, state_.size);
}

/// Notes where the caller's stream is, for tensors of a device. Where this rank cannot run the operation, it announces
/// that to the other ranks, which would wait for it in vain.
void Engine::begin_work(Submission& submission) {
  Signature& signature = submission.signature;
  if (signature.memory == MemoryKind::kHost || !state_.parts.backends) return;
  Status why;
  DeviceBackend* const device = state_.parts.backends->device(why);
  if (device == nullptr) {
    const DType dtype = signature.group.empty() ? signature.dtype : signature.group.front().dtype;
    signature.obstacle =
        Status(Errc::kUnavailable, fmt::format("it has no backend for {} values in {}: {}", to_string(dtype),
                                               to_string(signature.memory), why.message()));
    return;
  }
  const std::vector<DeviceBuffer> buffers = buffers_of(submission);
  signature.obstacle = device->begin_work(
      {submission.device, submission.name, signature.kind, signature.process_set, buffers, tensor_count(signature)},
      submission.work);
}

/// Adds an operation whose request is announced already.
std::shared_ptr<Completion> Engine::insert(Submission submission) {
  if (state_.phase.is_ended()) {
    auto completion = std::make_shared<Completion>();
    completion->finish(state_.outcome_of(submission, state_.phase.reason()));
    return completion;
  }
  state_.parts.timeline->submitted(submission.name, submission.signature.kind);
  if (log::enabled(log::Level::kTrace))
    log::trace("{} is submitted", operation_text(submission.name, submission.signature));
  return state_.work.operations.insert(std::move(submission));
}

/// Sees to it that a driver announces the request: the thread "runjob-driver", which the caller notifies when this
/// returns true. A thread that is woken runs at once, where there are as many ranks as processors: without a lock that
/// it would sleep for.
bool Engine::wake_driver() {
  const WorkQueue& work = state_.work;
  const bool is_first = work.requests() == 1, must_wait = work.window.is_used() && work.window.closes(Clock::now());
  if (must_wait && !is_first) return false;  // the driver has slept since the first one, and knows until when
  if (work.role() == DriverRole::kAsleep) state_.rounds->nudge();
  return !work.has_driver() && state_.has_work();
}

/// True for an operation of a device, the only one in flight, that the submitting thread can launch without waiting for
/// anything, so that no other thread has to be woken for it.
bool Engine::may_launch(const Submission& submission) const {
  const Signature& signature = submission.signature;
  if (signature.memory == MemoryKind::kHost || !state_.is_open()) return false;
  const DeviceBackend* const device = state_.parts.backends->made_device();
  const WorkQueue& work = state_.work;
  if (device == nullptr || !work.operations.empty() || work.requests() != 0 || work.window.is_used()) return false;
  for (std::size_t tensor = 0; tensor < tensor_count(signature); ++tensor) {
    if (!device->only_queues(call_without_buffers(signature, tensor))) return false;
  }
  return true;
}

/// An operation that was submitted, and what its thread does next, without the lock.
struct Engine::Begun {
  std::shared_ptr<Completion> completion;
  bool drives = false;        ///< it has the role of the driver
  bool needs_driver = false;  ///< it wakes the thread "runjob-driver"
};

/// Adds an operation whose request is to be announced. `waits`: its thread is about to wait for it.
/// Errors  as submit().
Engine::Begun Engine::begin(Submission submission, bool waits) {
  const bool has_no_number = is_unnamed(submission.name) && submission.key.empty();
  const std::uint64_t description = has_no_number ? UnnamedSubmissions::hash_of(submission.signature) : 0;
  check(submission);
  if (!state_.is_open()) state_.outcome_of(submission, state_.phase.reason()).throw_if_failed();
  if (state_.work.is_in_flight(submission.name))
    throw Error(Errc::kInvalidArgument,
                fmt::format("{}: an operation of this name is still in flight on {}",
                            operation_text(submission.name, submission.signature), state_.self));
  if (has_no_number) {
    UnnamedSubmissions::Next next = state_.work.unnamed.next(submission.signature.process_set, description);
    submission.name = std::move(next.name);
    submission.key = std::move(next.key);
  }
  begin_work(submission);
  Begun begun;
  begun.drives = (waits || may_launch(submission)) && state_.work.take_role(state_.phase);
  if (!state_.phase.is_ended())
    state_.work.add(announced_name(submission), submission.signature, /*begins=*/has_seen_end_.exchange(false));
  begun.completion = insert(std::move(submission));
  if (!begun.drives) begun.needs_driver = wake_driver();
  return begun;
}

/// For a thread that does not wait.
std::shared_ptr<Completion> Engine::launch(Begun begun) {
  if (begun.needs_driver) state_.work_changed.notify_one();
  if (begun.drives) driver_.drive_without_waiting();
  return std::move(begun.completion);
}

/// Errors  the reason why the operation's process set was given up.
void Engine::refuse_given_up(const auto& submission) const {
  if (state_.given_up.empty()) return;
  const auto found = state_.given_up.find(submission.signature.process_set);
  if (found == state_.given_up.end()) return;
  const Status& why = found->second;
  throw Error(why.code(),
              fmt::format("{}: {}",
                          operation_text(submission.name, submission.signature.kind, submission.signature.process_set),
                          why.message()));
}

/// Of a process set that was given up. Null when the engine takes no operations any more.
std::shared_ptr<Completion> Engine::announce_end_of_set(int process_set) {
  try {
    Begun begun;
    {
      const MutexLock lock(state_.mutex);
      begun = begin(Execution::end_of_set(process_set), /*waits=*/false);
    }
    return launch(std::move(begun));
  } catch (const Error&) {
    return nullptr;
  }
}

std::shared_ptr<Completion> Engine::submit(Submission submission) {
  Begun begun;
  {
    const MutexLock lock(state_.mutex);
    refuse_given_up(submission);
    begun = begin(std::move(submission), /*waits=*/false);
  }
  return launch(std::move(begun));
}

/// Leaves the role, unless the operation was announced but is not done: then it goes on like any other, with a
/// completion.
void Engine::leave_at_once(const SubmissionView& submission, bool is_done, Outcome& outcome) {
  state_.work.at_once.reset();
  has_seen_end_.store(true, std::memory_order_relaxed);
  if (is_done || !driver_.is_in_round()) return state_.leave_role();
  Submission announced = to_submission(submission);
  check(announced);
  outcome.completion = insert(std::move(announced));
  if (InFlight::Entry* const entry = state_.work.operations.find(std::string(submission.name))) driver_.lend(*entry);
}

/// Calls `use` with the operation as it is announced: in a process set the root of a broadcast is counted among its
/// members. False, without a call, when it is none of them.
template <class Use>
bool Engine::with_counted_root(const SubmissionView& submission, Use use) const {
  const SignatureView& signature = submission.signature;
  if (signature.kind != Kind::kBroadcast || signature.process_set == 0) return use(submission);
  const std::optional<int> root = state_.parts.members.index_of(signature.root);
  if (!root) return false;
  SubmissionView counted = submission;
  counted.signature.root = *root;
  return use(counted);
}

bool Engine::run_at_once(const SubmissionView& submission, Deadline deadline, Outcome& outcome) {
  return with_counted_root(submission, [&](const SubmissionView& counted) {
    return driver_.run_at_once(counted, deadline, outcome.status, outcome.result);
  });
}

/// Makes the calling thread the driver when the operation is the only one of this rank, and has one tensor on the host.
bool Engine::take_role_at_once(const SubmissionView& submission) {
  WorkQueue& work = state_.work;
  if (submission.signature.memory != MemoryKind::kHost || !submission.group.empty()) return false;
  if (!state_.is_open() || state_.parts.timeline->is_on()) return false;
  if (!work.operations.empty() || work.requests() != 0 || !work.take_role(state_.phase)) return false;
  work.at_once = {submission.name, submission.signature.kind};
  return true;
}

/// Numbers an unnamed operation if it is certain to be announced at once: a number that is not announced would be
/// missing in the order. `next` has what `submission` then views. Otherwise leaves the role of the driver.
bool Engine::number_at_once(SubmissionView& submission, UnnamedSubmissions::Next& next) {
  UnnamedSubmissions& unnamed = state_.work.unnamed;
  const int process_set = submission.signature.process_set;
  const std::uint64_t description = UnnamedSubmissions::hash_of(submission.signature);
  const std::optional<std::string> key = unnamed.expected_key(process_set, description);
  if (key) {
    submission.key = *key;
    const bool is_certain = with_counted_root(
        submission, [this](const SubmissionView& counted) { return driver_.can_run_at_once(counted); });
    submission.key = {};
    if (is_certain) {
      next = unnamed.next(process_set, description);
      submission.name = next.name;
      submission.key = next.key;
      state_.work.at_once->name = next.name;
      return true;
    }
  }
  state_.work.at_once.reset();
  state_.leave_role();
  return false;
}

Engine::Outcome Engine::run(const SubmissionView& given, Deadline deadline) {
  Outcome outcome;  // the only variable that is returned, so that it is never moved
  const bool has_no_name = is_unnamed(given.name);
  UnnamedSubmissions::Next next;
  SubmissionView numbered;
  if (has_no_name) numbered = given;
  const SubmissionView& submission = has_no_name ? std::as_const(numbered) : given;
  bool at_once = false;
  {
    const MutexLock lock(state_.mutex);
    refuse_given_up(submission);
    at_once = take_role_at_once(submission);
    if (at_once && has_no_name) at_once = number_at_once(numbered, next);
  }
  if (at_once) {
    const bool is_done = run_at_once(submission, deadline, outcome);
    const MutexLock lock(state_.mutex);
    leave_at_once(submission, is_done, outcome);
    if (is_done) return outcome;
  }
  bool drives = outcome.completion != nullptr;
  if (!drives) {
    Begun begun;
    {
      const MutexLock lock(state_.mutex);
      begun = begin(to_submission(submission), /*waits=*/true);
    }
    if (begun.needs_driver) state_.work_changed.notify_one();
    drives = begun.drives;
    outcome.completion = std::move(begun.completion);
  }
  if (drives) driver_.drive_until(*outcome.completion, deadline);
  outcome.status = wait(*outcome.completion, deadline).value_or(Status());
  return outcome;
}

std::optional<Status> Engine::wait(const Completion& completion, Deadline deadline) {
  has_seen_end_.store(true, std::memory_order_relaxed);
  if (completion.done()) return completion.wait(std::nullopt);
  driver_.begin_waiting();
  bool drives = false;
  {
    const MutexLock lock(state_.mutex);
    WorkQueue& work = state_.work;
    drives = work.take_role(state_.phase);
    if (!drives) {
      work.awaited.push_back(&completion);
      if (work.role() == DriverRole::kAsleep && work.hold) state_.rounds->nudge();
    }
  }
  if (drives) driver_.drive_until(completion, deadline);
  std::optional<std::chrono::duration<double>> timeout;
  if (deadline)
    timeout = std::max(std::chrono::duration<double>(0), std::chrono::duration<double>(*deadline - Clock::now()));
  std::optional<Status> outcome = completion.wait(timeout);
  if (!drives) {
    const MutexLock lock(state_.mutex);
    std::vector<const Completion*>& awaited = state_.work.awaited;
    awaited.erase(std::find(awaited.begin(), awaited.end(), &completion));
  }
  driver_.end_waiting();
  return outcome;
}

Statistics Engine::statistics() const {
  Statistics result = driver_.statistics();
  const MutexLock lock(state_.mutex);
  if (state_.parts.control) result.control_messages = state_.parts.control->messages_sent();
  return result;
}

std::optional<Status> Engine::settle(Deadline deadline) {
  constexpr std::chrono::milliseconds kLook{1};
  std::vector<std::shared_ptr<Completion>> in_flight;
  {
    const MutexLock lock(state_.mutex);
    in_flight = state_.work.operations.completions();
  }
  Status failed;
  for (const auto& completion : in_flight) {
    const std::optional<Status> outcome = wait(*completion, deadline);
    if (!outcome) return std::nullopt;
    if (failed.ok()) failed = *outcome;
  }
  const MutexLock lock(state_.mutex);
  for (;;) {
    const Status& reason = state_.phase.reason();
    if (!state_.parts.backends) return failed.ok() ? reason : failed;
    const std::optional<Status> outcome = state_.parts.backends->device_outcome();
    // A rank that has left takes nothing from operations that are done, or that devices are about to do.
    const bool is_over = !state_.phase.is_open() && !is_goodbye(reason);
    if (outcome || is_over || state_.phase.is_ended())
      return !failed.ok() ? failed : is_over || !outcome ? reason : *outcome;
    if (deadline && Clock::now() >= *deadline) return std::nullopt;
    // A GPU notifies nobody of its end, so that this thread has to look. It learns of the job's end at once.
    state_.changed.wait_until(state_.mutex, Clock::now() + kLook);
  }
}

void Engine::shutdown() {
  const MutexLock one_at_a_time(shutdown_mutex_);
  if (!watcher_.is_running()) return;
  begin_shutdown();
  watcher_.join();
  Status reason;
  bool cuts_off = false;
  {
    const MutexLock lock(state_.mutex);
    reason = state_.phase.reason();
    cuts_off = state_.is_working() || state_.rounds == nullptr;
    state_.phase.enter(PhaseEvent::kEnd, reason);
    if (state_.rounds != nullptr) state_.rounds->leave();
  }
  if (cuts_off) state_.parts.backends->abort(reason);
  driver_.stop();
  std::vector<InFlight::Taken> left;
  std::unique_ptr<BackendSet> backends;
  {
    const MutexLock lock(state_.mutex);
    left = state_.work.operations.take_all();
    backends = std::move(state_.parts.backends);
  }
  backends.reset();
  execution_.end(std::move(left), reason);
  {
    const MutexLock lock(state_.mutex);  // statistics() may look at it
    state_.parts.control.reset();
  }
  if (state_.parts.members.process_set() == 0) state_.parts.timeline->shared().close();
}

void Engine::begin_shutdown(Status why) {
  const MutexLock lock(state_.mutex);
  if (state_.farewell) return;
  state_.phase.expect(why.ok() ? goodbye_reason(state_.self, Goodbye::kShutdown) : why);
  state_.farewell = {std::move(why), Clock::now() + Watcher::kFarewell};
  state_.poll.wake();
}

bool Engine::fail(Status why) {
  const MutexLock lock(state_.mutex);
  if (!state_.is_open()) return false;
  state_.report(LifeReport::Type::kSetFailed, std::move(why));
  return true;
}

void Engine::stalled(const Status& why, int late) {
  const MutexLock lock(state_.mutex);
  if (state_.is_open()) state_.report({.type = LifeReport::Type::kStalled, .status = why, .late = late});
}

void Engine::give_up(int process_set, Status why) {
  const MutexLock lock(state_.mutex);
  if (!state_.is_open() || (process_set != 0 && !state_.given_up.emplace(process_set, why).second)) return;
  state_.report({.type = LifeReport::Type::kGiveUp, .status = std::move(why), .process_set = process_set});
}

void Engine::settle_set(int process_set, Deadline deadline) {
  std::vector<std::shared_ptr<Completion>> in_flight;
  {
    const MutexLock lock(state_.mutex);
    in_flight = state_.work.operations.completions_of(process_set);
  }
  for (const auto& completion : in_flight) static_cast<void>(wait(*completion, deadline));
}

std::optional<Engine::Origin> Engine::origin_of(const Completion& completion) const {
  const MutexLock lock(state_.mutex);
  const Submission* const found = state_.work.operations.find(completion);
  if (found == nullptr) return std::nullopt;
  return Origin{found->signature.process_set, operation_text(found->name, found->signature)};
}

void Engine::end(Status why) {
  const MutexLock lock(state_.mutex);
  state_.ended_outside = std::move(why);
  state_.poll.wake();
}

}  // namespace runjob::runtime
