#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/backend_set.hpp"

/// A stand-in for a device: memory that the processor cannot touch, and a backend that can.
namespace runjob::runtime {

/// Device memory: pages that are mapped twice, at an address without access, which is the buffer's, and at another one
/// that only the stand-in's backend uses. A read or write of the buffer by anything else is a crash.
class StandInMemory : public BufferAllocator {
 public:
  ~StandInMemory() override {
    const MutexLock lock(mutex_);
    for (const auto& [memory, pages] : pages_) unmap(memory, pages);
  }

  void* allocate(std::size_t bytes) override {
    const int file = ::memfd_create("device stand-in", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) return nullptr;
    void* memory = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
    void* view = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    const MutexLock lock(mutex_);
    pages_[static_cast<std::byte*>(memory)] = {static_cast<std::byte*>(view), bytes};
    ++allocations_;
    return memory;
  }

  bool free(void* memory) override {
    const MutexLock lock(mutex_);
    const auto found = pages_.find(static_cast<std::byte*>(memory));
    if (found == pages_.end()) return false;
    unmap(found->first, found->second);
    pages_.erase(found);
    return true;
  }

  void clear(void* memory, std::size_t bytes) override { std::memset(view(memory), 0, bytes); }

  /// The address at which the backend, or a test, reaches a byte of device memory.
  std::byte* view(const void* memory) const {
    const auto* byte = static_cast<const std::byte*>(memory);
    const MutexLock lock(mutex_);
    auto found = pages_.upper_bound(const_cast<std::byte*>(byte));
    if (found == pages_.begin()) return nullptr;
    --found;
    return byte < found->first + found->second.bytes ? found->second.view + (byte - found->first) : nullptr;
  }

  /// The number of buffers that have been allocated, and the number of those that are in use.
  int allocations() const {
    const MutexLock lock(mutex_);
    return allocations_;
  }
  std::size_t in_use() const {
    const MutexLock lock(mutex_);
    return pages_.size();
  }

 private:
  struct Pages {
    std::byte* view;
    std::size_t bytes;
  };

  static void unmap(std::byte* memory, const Pages& pages) {
    ::munmap(memory, pages.bytes);
    ::munmap(pages.view, pages.bytes);
  }

  mutable Mutex mutex_;
  std::map<std::byte*, Pages> pages_ GUARDED_BY(mutex_);
  int allocations_ GUARDED_BY(mutex_) = 0;
};

/// The backend of that memory: runs everything except products on the views, through the host's backend.
class StandInBackend : public DeviceBackend {
 public:
  StandInBackend(std::shared_ptr<StandInMemory> memory, DataBackend& host) : memory_(std::move(memory)), host_(host) {}

  Status begin_work(const DeviceSubmission&, std::shared_ptr<DeviceWork>&) override { return {}; }
  Status refusal(const Call& call) override {
    return call.op == ReduceOp::kProduct ? Status(Errc::kUnavailable, "the device has no products") : Status();
  }
  Status run(std::span<const Call> calls) override {
    for (const Call& call : calls) {
      devices.push_back(call.memory.device.ordinal);
      Call on_host = call;
      on_host.memory = {};
      if (call.input != nullptr) on_host.input = memory_->view(call.input);
      if (call.output != nullptr) on_host.output = memory_->view(call.output);
      if (Status status = host_.run(on_host); !status.ok()) return status;
    }
    return {};
  }
  bool only_queues(const Call&) const override { return false; }
  std::shared_ptr<BufferAllocator> memory() const override { return memory_; }
  std::optional<Status> outcome() const override { return Status(); }
  std::string unfinished() const override { return {}; }
  void abort(const Status&) override {}

  std::vector<int> devices;  ///< the ordinal of each call, in order; read once the engine is at rest

 private:
  const std::shared_ptr<StandInMemory> memory_;
  DataBackend& host_;
};

/// The backend of the devices, which is made if it is not there.
template <class Device = StandInBackend>
Device& device_of(BackendSet& backends) {
  Status why;
  DeviceBackend* const device = backends.device(why);
  why.throw_if_failed();
  return static_cast<Device&>(*device);
}

}  // namespace runjob::runtime
