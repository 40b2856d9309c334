#include "runtime/collectives/backend_set.hpp"

#include <utility>

#include "base/error.hpp"

namespace runjob::runtime {

BackendSet::BackendSet(std::unique_ptr<Backend> host, MakeDevice make_device)
    : host_(std::move(host)), make_device_(std::move(make_device)) {}

DeviceBackend* BackendSet::device(Status& why) {
  if (DeviceBackend* const backend = made_device()) return backend;
  const MutexLock lock(mutex_);
  try {
    if (!device_) {
      if (aborted_) aborted_->throw_if_failed();
      if (!make_device_) throw Error(Errc::kUnavailable, "this job has no devices");
      device_ = make_device_(*host_, report_);
      made_.store(device_.get(), std::memory_order_release);
    }
    return device_.get();
  } catch (const Error& error) {
    why = Status(error);
    return nullptr;
  }
}

Status BackendSet::run(std::span<const Call> calls) {
  if (calls.front().memory.kind == MemoryKind::kHost) return host_->run(calls.front());
  Status why;
  DeviceBackend* const backend = device(why);
  return backend == nullptr ? why : backend->run(calls);
}

std::shared_ptr<BufferAllocator> BackendSet::buffers(MemoryKind kind) {
  if (kind == MemoryKind::kHost) return host_->buffers();
  Status why;
  const DeviceBackend* const backend = device(why);
  return backend == nullptr ? nullptr : backend->memory();
}

void BackendSet::on_failure(OnFailure report) {
  const MutexLock lock(mutex_);
  report_ = std::move(report);
}

std::optional<Status> BackendSet::device_outcome() const {
  const DeviceBackend* const backend = made_device();
  return backend == nullptr ? Status() : backend->outcome();
}

std::string BackendSet::unfinished() const {
  const DeviceBackend* const backend = made_device();
  return backend == nullptr ? std::string() : backend->unfinished();
}

void BackendSet::abort(const Status& why) {
  {
    const MutexLock lock(mutex_);
    if (!aborted_) aborted_ = why;
  }
  if (DeviceBackend* const backend = made_device()) backend->abort(why);
  host_->abort(why);
}

}  // namespace runjob::runtime
