#include "runtime/backends/late_device_backend.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace runjob::runtime {

LateDeviceBackend::LateDeviceBackend(Make make, MeshOptions mesh, const DeviceTerms& terms, DataBackend& host)
    : make_(std::move(make)), mesh_(std::move(mesh)), terms_(terms), host_(host) {}

/// Errors  those of Make; those of the abort, when the job has ended.
DataBackend& LateDeviceBackend::made() const {
  if (DataBackend* const backend = made_.load(std::memory_order_acquire)) return *backend;
  const MutexLock lock(mutex_);
  if (owned_) return *owned_;
  if (aborted_) aborted_->throw_if_failed();
  owned_ = make_({mesh_, terms_, &host_, report_, [](bool is_warning, const std::string& line) {
                    is_warning ? log::warn("{}", line) : log::info("{}", line);
                  }});
  made_.store(owned_.get(), std::memory_order_release);
  return *owned_;
}

bool LateDeviceBackend::supports(const Call& call) const {
  if (call.memory.kind != MemoryKind::kDevice) return false;
  try {
    return made().supports(call);
  } catch (const Error&) {  // objection() has the reason
    return false;
  }
}

std::string LateDeviceBackend::objection(const Call& call) const {
  if (call.memory.kind != MemoryKind::kDevice) return {};
  try {
    return made().objection(call);
  } catch (const Error& error) {
    return error.what();
  }
}

Status LateDeviceBackend::begin_work(const DeviceSubmission& submission, std::shared_ptr<DeviceWork>& work) {
  try {
    return made().begin_work(submission, work);
  } catch (const Error& error) {
    return Status(error);
  }
}

/// Where the backend cannot be made, run() fails with the reason.
Status LateDeviceBackend::refusal(const Call& call) {
  try {
    return made().refusal(call);
  } catch (const Error&) {
    return {};
  }
}

Status LateDeviceBackend::run(const Call& call) {
  try {
    return made().run(call);
  } catch (const Error& error) {
    return Status(error);
  }
}

Status LateDeviceBackend::run_together(std::span<const Call> calls) {
  try {
    return made().run_together(calls);
  } catch (const Error& error) {
    return Status(error);
  }
}

bool LateDeviceBackend::only_queues(const Call& call) const {
  const DataBackend* const backend = made_.load(std::memory_order_acquire);
  return backend != nullptr && backend->only_queues(call);
}

std::shared_ptr<BufferAllocator> LateDeviceBackend::buffers(MemoryKind kind) const {
  if (kind != MemoryKind::kDevice) return nullptr;
  try {
    return made().buffers(kind);
  } catch (const Error&) {
    return nullptr;
  }
}

void LateDeviceBackend::on_failure(std::function<void(const Status&)> report) {
  const MutexLock lock(mutex_);
  report_ = std::move(report);
}

std::optional<Status> LateDeviceBackend::device_outcome() const {
  const DataBackend* const backend = made_.load(std::memory_order_acquire);
  return backend == nullptr ? Status() : backend->device_outcome();
}

std::string LateDeviceBackend::unfinished() const {
  const DataBackend* const backend = made_.load(std::memory_order_acquire);
  return backend == nullptr ? std::string() : backend->unfinished();
}

void LateDeviceBackend::abort(const Status& why) {
  {
    const MutexLock lock(mutex_);
    if (!aborted_) aborted_ = why;
  }
  if (DataBackend* const backend = made_.load(std::memory_order_acquire)) backend->abort(why);
}

}  // namespace runjob::runtime
