#include "runtime/collectives/cuda/work.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime::cuda {
namespace {

/// How a host thread waits for a GPU: at first it looks all the time, then it sleeps, up to the longest pause.
constexpr std::chrono::microseconds kSpin{50}, kFirstPause{20}, kLongestPause{500};

}  // namespace

std::shared_ptr<Work> Work::submitted(Gpu& gpu, const DeviceSubmission& submission) {
  const CurrentGpu current(gpu);
  const auto stream = static_cast<Stream>(submission.device.stream);
  CaptureStatus capture = kCaptureNone;
  check(gpu, driver().stream_is_capturing(stream, &capture), "asking whether the stream is being captured");
  if (capture != kCaptureNone) {
    throw Error(Errc::kInvalidArgument,
                fmt::format("the stream is being captured into a {} graph, in which an operation that the ranks must "
                            "agree on cannot be; submit it outside of the capture",
                            driver().vendor->platform));
  }
  for (const DeviceBuffer& buffer : submission.buffers) {
    const std::string why = objection(gpu, buffer.memory);
    if (why.empty()) continue;
    const bool is_group = submission.tensors > 1;
    throw Error(Errc::kInvalidArgument,
                is_group ? tensor_name(submission.name, buffer.tensor, submission.tensors) + ": " + why : why);
  }
  auto work = std::make_shared<Work>(gpu);
  work->ready_ = gpu.take_event();
  check(gpu, driver().event_record(work->ready_, stream), "recording an event on the caller's stream");
  work->flight_ = gpu.flights().add(submission.name, submission.kind, submission.process_set);
  return work;
}

Work::~Work() {
  gpu_.flights().reach(flight_, FlightRecord::Step::kDone);
  if (ready_ != nullptr) gpu_.give_back(ready_);
  if (done_ != nullptr) gpu_.give_back(done_);
}

/// The end of an earlier call is not that of the operation. That call may be on another stream, so this one waits.
void Work::begin_launch(Stream stream) {
  const bool is_first = !is_launched_.exchange(false);
  if (!is_first) {
    const MutexLock lock(mutex_);
    if (outcome_ && outcome_->ok()) outcome_.reset();
  }
  const Event before = is_first ? ready_ : done_;
  if (before != nullptr) check(gpu_, driver().stream_wait(stream, before, 0), "waiting for an operation's input");
}

void Work::end_launch(Stream stream) {
  if (done_ == nullptr) done_ = gpu_.take_event();
  check(gpu_, driver().event_record(done_, stream), "recording the end of an operation");
  gpu_.flights().reach(flight_, FlightRecord::Step::kLaunched);
  is_launched_.store(true, std::memory_order_release);
}

void Work::fail(const Status& why) {
  if (outcome()) return;
  const MutexLock lock(mutex_);
  if (!outcome_) outcome_ = why;
}

void Work::fail_launched(const Status& why) {
  const MutexLock lock(mutex_);
  if (!outcome_ || outcome_->ok()) outcome_ = why;
}

void Work::note_begun() {
  if (ready_ == nullptr || !is_launched()) return;
  const CurrentGpu current(gpu_);
  if (query(ready_) == kSuccess) gpu_.flights().reach(flight_, FlightRecord::Step::kBegun);
}

bool Work::notify_if_done() {
  if (!outcome()) return false;
  gpu_.flights().reach(flight_, FlightRecord::Step::kDone);
  std::vector<std::function<void()>> callbacks;
  {
    const MutexLock lock(mutex_);
    callbacks = std::exchange(callbacks_, {});
  }
  for (const auto& notify : callbacks) notify();
  return true;
}

/// Failures first: an aborted kernel ends, and its event is complete then.
std::optional<Status> Work::outcome() {
  const MutexLock lock(mutex_);
  if (outcome_ || !is_launched()) return outcome_;
  try {
    const CurrentGpu current(gpu_);  // otherwise the query would void a graph that this thread is capturing
    const Result result = query(done_);
    if (result == kNotReady) return std::nullopt;
    check(gpu_, result, "an operation");
    outcome_.emplace();
  } catch (const Error& error) {
    outcome_ = Status(error);
  }
  return outcome_;
}

/// Looks at the event again and again: CUDA's own wait for it has no deadline, and does not end when the work is failed
/// by another thread.
std::optional<Status> Work::wait(Deadline deadline) {
  using Clock = std::chrono::steady_clock;
  const auto spins_until = Clock::now() + kSpin;
  std::chrono::microseconds pause = kFirstPause;
  for (;;) {
    if (std::optional<Status> ended = outcome()) return ended;
    const auto now = Clock::now();
    if (deadline && now >= *deadline) return std::nullopt;
    if (now < spins_until) continue;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

/// Without a look at the device, which costs as much as letting the stream wait for what is done.
Status Work::wait_on(void* stream) {
  {
    const MutexLock lock(mutex_);
    if (outcome_) return *outcome_;
  }
  try {
    const CurrentGpu current(gpu_);
    check(driver().stream_wait(static_cast<Stream>(stream), done_, 0), "making the caller's stream wait");
    return {};
  } catch (const Error& error) {
    return Status(error);
  }
}

void Work::on_done(std::function<void()> notify) {
  if (!outcome()) {
    const MutexLock lock(mutex_);
    if (!outcome_) return callbacks_.push_back(std::move(notify));
  }
  notify();
}

}  // namespace runjob::runtime::cuda
