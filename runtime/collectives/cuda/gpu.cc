#include "runtime/collectives/cuda/gpu.hpp"

#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime::cuda {
namespace {

/// As nvidia-smi prints it.
std::string uuid_text(const Uuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

GpuText describe(DeviceNumber device) {
  char name[128] = {};
  Uuid uuid{};
  check(driver().device_name(name, sizeof name - 1, device), "asking for a GPU's name");
  check(driver().device_uuid(&uuid, device), "asking for a GPU's UUID");
  return {uuid_text(uuid), name};
}

int count_gpus() {
  int count = 0;
  check(driver().device_count(&count), "counting the GPUs");
  return count;
}

}  // namespace

Gpu& Gpu::of(int ordinal) {
  static Mutex mutex;
  static auto* const gpus = new std::map<int, std::unique_ptr<Gpu>>;  // never destroyed
  const MutexLock lock(mutex);
  std::unique_ptr<Gpu>& gpu = (*gpus)[ordinal];
  if (!gpu) gpu.reset(new Gpu(ordinal));
  return *gpu;
}

Gpu::Gpu(int ordinal) : ordinal_(ordinal) {
  const int count = count_gpus();
  if (ordinal < 0 || ordinal >= count) {
    throw Error(
        Errc::kInvalidArgument,
        fmt::format("there is no GPU {}: this process has {} (CUDA_VISIBLE_DEVICES may hide others)", ordinal, count));
  }
  DeviceNumber device = 0;
  check(driver().device_get(&device, ordinal), "finding a GPU");
  const GpuText text = describe(device);
  uuid_ = text.uuid;
  name_ = text.name;
  check(driver().primary_retain(&context_, device), "taking a GPU's primary context");
}

Stream Gpu::take_stream() {
  {
    const MutexLock lock(mutex_);
    if (!free_streams_.empty()) {
      const Stream stream = free_streams_.back();
      free_streams_.pop_back();
      return stream;
    }
  }
  const CurrentGpu current(*this);
  int least = 0, greatest = 0;
  check(driver().priority_range(&least, &greatest), "asking for the priorities of streams");
  Stream stream = nullptr;
  check(driver().stream_create(&stream, kStreamNonBlocking, greatest), "making a stream");
  return stream;
}

void Gpu::give_back(Stream stream) {
  const MutexLock lock(mutex_);
  free_streams_.push_back(stream);
}

Event Gpu::take_event() {
  const MutexLock lock(mutex_);
  if (!free_events_.empty()) {
    const Event event = free_events_.back();
    free_events_.pop_back();
    return event;
  }
  Event event = nullptr;
  check(driver().event_create(&event, kEventDisableTiming), "making an event");
  free_events_.reserve(++events_made_);  // give_back() need not allocate
  return event;
}

void Gpu::give_back(Event event) {
  const MutexLock lock(mutex_);
  free_events_.push_back(event);
}

std::size_t Gpu::events_made() const {
  const MutexLock lock(mutex_);
  return events_made_;
}

std::string Gpu::text() const {
  return fmt::format("GPU {} ({}, {})", ordinal_, uuid_, name_);
}

void check(const Gpu& gpu, Result result, const char* action) {
  if (result != kSuccess) check(result, fmt::format("{}: {}", gpu.text(), action).c_str());
}

/// The driver knows no memory that was freed, and none of the host's unless it was pinned: it has the type 0.
std::string objection(const Gpu& gpu, const void* memory) {
  unsigned type = 0;
  int ordinal = -1;
  PointerAttribute which[] = {kPointerMemoryType, kPointerDeviceOrdinal};
  void* values[] = {&type, &ordinal};
  check(gpu, driver().pointer_attributes(2, which, values, reinterpret_cast<Address>(memory)),
        "asking where a tensor lies");
  if (type != kMemoryTypeDevice)
    return fmt::format("{} is no memory of a GPU: it is the host's, or has been freed", fmt::ptr(memory));
  if (ordinal == gpu.ordinal()) return {};
  return fmt::format("{} lies on GPU {}, and the operation is for GPU {}", fmt::ptr(memory), ordinal, gpu.ordinal());
}

CurrentGpu::CurrentGpu(const Gpu& gpu) {
  check(driver().context_push(gpu.context()), "making a GPU's context current");
  if (driver().exchange_capture_mode(&mode_) != kSuccess) mode_ = kCaptureRelaxed;
}

CurrentGpu::~CurrentGpu() {
  driver().exchange_capture_mode(&mode_);
  Context context = nullptr;
  driver().context_pop(&context);
}

std::vector<GpuText> list_gpus() {
  std::vector<GpuText> gpus;
  const int count = count_gpus();
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DeviceNumber device = 0;
    check(driver().device_get(&device, ordinal), "finding a GPU");
    gpus.push_back(describe(device));
  }
  return gpus;
}

}  // namespace runjob::runtime::cuda
