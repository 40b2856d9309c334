#include "runtime/collectives/cuda/work.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace runjob::runtime::cuda {
namespace {

/// How a host thread waits for a GPU: at first it looks all the time, then it sleeps, up to the longest pause.
constexpr std::chrono::microseconds kSpin{50}, kFirstPause{20}, kLongestPause{500};

}  // namespace

std::shared_ptr<Work> Work::submitted(Gpu& gpu, Stream stream) {
  const CurrentGpu current(gpu);
  CaptureStatus capture = kCaptureNone;
  check(driver().stream_is_capturing(stream, &capture), "asking whether the stream is being captured");
  if (capture != kCaptureNone) {
    throw Error(Errc::kInvalidArgument,
                "the stream is being captured into a CUDA graph, in which an operation that the ranks must agree on "
                "cannot be; submit it outside of the capture");
  }
  auto work = std::make_shared<Work>(gpu);
  work->ready_ = gpu.take_event();
  check(driver().event_record(work->ready_, stream), "recording an event on the caller's stream");
  return work;
}

Work::~Work() {
  if (ready_ != nullptr) gpu_.give_back(ready_);
  if (done_ != nullptr) gpu_.give_back(done_);
}

/// The end of an earlier call is not that of the operation.
void Work::begin_launch(Stream stream) {
  const bool is_first = !is_launched_.exchange(false);
  if (!is_first) {
    const MutexLock lock(mutex_);
    if (outcome_ && outcome_->ok()) outcome_.reset();
  }
  if (ready_ == nullptr || !is_first) return;
  check(driver().stream_wait(stream, ready_, 0), "waiting for the caller's stream");
  gpu_.give_back(std::exchange(ready_, nullptr));  // a later record does not change what the stream waits for
}

void Work::end_launch(Stream stream) {
  if (done_ == nullptr) done_ = gpu_.take_event();
  check(driver().event_record(done_, stream), "recording the end of an operation");
  is_launched_.store(true, std::memory_order_release);
}

void Work::fail(const Status& why) {
  const MutexLock lock(mutex_);
  if (!outcome_) outcome_ = why;
}

bool Work::notify_if_done() {
  if (!outcome()) return false;
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
    const Result result = driver().event_query(done_);
    if (result == kNotReady) return std::nullopt;
    check(result, "an operation on the GPU");
    outcome_.emplace();
  } catch (const Error& error) {
    outcome_ = Status(error);
  }
  return outcome_;
}

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
