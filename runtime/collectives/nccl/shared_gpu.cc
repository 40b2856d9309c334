#include "runtime/collectives/nccl/shared_gpu.hpp"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/collectives/nccl/bounded_call.hpp"

namespace runjob::runtime::nccl {
namespace {

using Clock = std::chrono::steady_clock;

Mutex gpus_mutex;

std::map<cuda::Gpu*, std::unique_ptr<SharedGpu>>& gpus() REQUIRES(gpus_mutex) {
  static auto* const made = new std::map<cuda::Gpu*, std::unique_ptr<SharedGpu>>;  // never destroyed
  return *made;
}

}  // namespace

SharedGpu& SharedGpu::of(cuda::Gpu& gpu) {
  const MutexLock lock(gpus_mutex);
  std::unique_ptr<SharedGpu>& shared = gpus()[&gpu];
  if (!shared) shared.reset(new SharedGpu(gpu));
  return *shared;
}

void SharedGpu::add(std::shared_ptr<CommHandle> handle) {
  const MutexLock lock(mutex_);
  handles_.push_back(std::move(handle));
}

void SharedGpu::remove(const std::shared_ptr<CommHandle>& handle) {
  const MutexLock lock(mutex_);
  std::erase(handles_, handle);
}

void SharedGpu::join(const void* backend, std::function<void(const Status& why)> end_works) {
  const MutexLock lock(backends_mutex_);
  backends_[backend] = std::move(end_works);
}

void SharedGpu::leave(const void* backend) {
  const MutexLock lock(backends_mutex_);
  backends_.erase(backend);
}

void SharedGpu::stop_all(const Library& library, const Status& why, Warn warn) {
  {
    const MutexLock lock(backends_mutex_);
    for (const auto& [backend, end_works] : backends_) end_works(why);
  }
  Handles handles;
  {
    const MutexLock lock(mutex_);
    handles = std::exchange(handles_, {});
  }
  stop(library, std::move(handles), std::move(warn));
}

void SharedGpu::stop(const Library& library, Handles handles, Warn warn) {
  std::erase_if(handles, [](const auto& handle) { return handle->is_stopping.exchange(true); });
  if (handles.empty()) return;
  {
    const MutexLock lock(mutex_);
    ++stopping_;
  }
  std::thread([this, &library, handles = std::move(handles), warn = std::move(warn)] {
    const auto work = [this, &library, handles] { run_stop(library, handles); };
    if (!run_bounded("runjob-nccl", kReclaimTime, work) && warn) {
      warn(fmt::format("NCCL has not ended its work on {} within {} s; its memory there is given up", gpu_.text(),
                       kReclaimTime.count() / 1000));
    }
    const MutexLock lock(mutex_);
    --stopping_;
    stopped_.notify_all();
  }).detach();
}

/// A launch that hangs in NCCL keeps the mutex for ever; only the abort ends it then. The mutex has no wait with a
/// deadline.
void SharedGpu::run_stop(const Library& library, const Handles& handles) const {
  bool is_locked = false;
  const auto deadline = Clock::now() + kLaunchTime;
  while (!(is_locked = gpu_.launch_mutex().try_lock()) && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const auto& handle : handles) handle->is_stopped = true;
  if (is_locked) gpu_.launch_mutex().unlock();
  try {
    const cuda::CurrentGpu current(gpu_);
    tell(library, handles);
  } catch (const Error&) {  // the driver is gone with the process
  }
}

/// Within a group, NCCL sets the flags of all before it reclaims the first one; NCCL 2.28.9 can also set them alone.
void SharedGpu::tell(const Library& library, const Handles& handles) const {
  const auto each = [&](auto call) {
    for (const auto& handle : handles) {
      if (const Comm comm = handle->load()) call(comm);
    }
  };
  if (library.revoke != nullptr) {
    each([&](Comm comm) { library.revoke(comm, 0); });
    return each([&](Comm comm) { library.abort(comm); });
  }
  library.group_start();
  each([&](Comm comm) { library.abort(comm); });
  library.group_end();
}

cuda::Stream SharedGpu::take_stream(bool is_common) {
  if (!is_common) return gpu_.take_stream();
  const MutexLock lock(mutex_);
  if (common_ == nullptr) common_ = gpu_.take_stream();
  ++common_users_;
  return common_;
}

void SharedGpu::give_back(cuda::Stream stream, bool is_idle) {
  const MutexLock lock(mutex_);
  if (stream == common_) {
    is_common_idle_ = is_common_idle_ && is_idle;
    if (--common_users_ > 0) return;
    common_ = nullptr;
    is_idle = std::exchange(is_common_idle_, true);
  }
  if (is_idle) return gpu_.give_back(stream);
  given_up_.push_back(stream);
}

/// Streams that have ended their work can be used again.
bool SharedGpu::has_work() {
  const cuda::CurrentGpu current(gpu_);
  const MutexLock lock(mutex_);
  std::erase_if(given_up_, [&](cuda::Stream stream) {
    const cuda::Result result = cuda::query(stream);
    if (result == cuda::kSuccess) gpu_.give_back(stream);
    return result != cuda::kNotReady;
  });
  return !given_up_.empty();
}

std::string SharedGpu::leftover() {
  const auto deadline = Clock::now() + kReclaimTime;
  {
    const MutexLock lock(mutex_);
    if (given_up_.empty()) return {};
    while (stopping_ > 0) stopped_.wait(mutex_);
  }
  while (has_work()) {  // CUDA notifies nobody when a stream is idle
    if (Clock::now() >= deadline) {
      return fmt::format(
          "{} is still at work for a job that has failed, and NCCL could not end that: this process can join no other "
          "job, and must be replaced by a new one, as an elastic job does",
          gpu_.text());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

std::string SharedGpu::any_leftover() {
  std::vector<SharedGpu*> all;
  {
    const MutexLock lock(gpus_mutex);
    for (const auto& [gpu, shared] : gpus()) all.push_back(shared.get());
  }
  for (SharedGpu* const shared : all) {
    try {
      if (std::string left = shared->leftover(); !left.empty()) return left;
    } catch (const Error& error) {
      return error.what();
    }
  }
  return {};
}

std::string SharedGpu::stall(const DeviceTerms& terms) {
  constexpr std::chrono::milliseconds kNever{0}, kSeldom{250};
  if (terms.stall_warning == kNever && terms.stall_failure == kNever) return {};
  const MutexLock lock(mutex_);
  const auto now = Clock::now();
  if (now - inspected_ < kSeldom) return {};
  inspected_ = now;
  const cuda::FlightRecord::Unfinished first = gpu_.flights().first_unfinished();
  if (first.step == cuda::FlightRecord::Step::kSubmitted) return {};  // the other ranks are late, which they report
  const bool fails = terms.stall_failure != kNever && first.since_step >= terms.stall_failure;
  const bool warns =
      terms.stall_warning != kNever && first.since_step >= terms.stall_warning && now - warned_ >= terms.stall_warning;
  if (!fails && !warns) return {};
  const std::string text = fmt::format("{}: {}", gpu_.text(), gpu_.flights().first_unfinished_text());
  if (fails) {
    throw Error(Errc::kTimeout,
                text + "; --stall-check-shutdown-time-seconds (RUNJOB_STALL_SHUTDOWN_TIME_SECONDS) allows no more");
  }
  warned_ = now;
  return text;
}

}  // namespace runjob::runtime::nccl
