#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "runtime/collectives/cuda/driver_abi.hpp"
#include "tests/gpu_stand_in/gpu_objects.hpp"
#include "tests/gpu_stand_in/stand_in.hpp"
#include "tests/gpu_stand_in/vendor_names.hpp"

/// libcuda.so.1 for machines without a GPU: see stand_in.hpp. Its functions are those of driver_abi.hpp.
namespace {

using namespace runjob::runtime::cuda;
using stand_in::EventState;
using stand_in::StreamThread;

constexpr Result kNoDevice = 100, kInvalidDevice = 101, kInvalidContext = 201;

struct Gpu {
  explicit Gpu(int of)
      : ordinal(of),
        most_delay_us(stand_in::number("RUNJOB_STAND_IN_DELAY_US", 100)),
        room(stand_in::number("RUNJOB_STAND_IN_KERNELS", 64)) {}
  const int ordinal, most_delay_us;
  stand_in::Memory memory{static_cast<std::size_t>(stand_in::number("RUNJOB_STAND_IN_MIB", 1024)) << 20};
  stand_in::Room room;
  std::mutex mutex;
  StreamThread* usual = nullptr;  ///< the default stream
};

/// Never destroyed, like all that its threads use.
struct World {
  std::vector<std::unique_ptr<Gpu>> gpus;
  stand_in::CallList failing{"RUNJOB_STAND_IN_FAIL"}, hanging{"RUNJOB_STAND_IN_HANG"}, counted{"RUNJOB_STAND_IN_COUNT"};
  World() {
    for (int i = 0; i < stand_in::number("RUNJOB_STAND_IN_GPUS", 8); ++i) gpus.push_back(std::make_unique<Gpu>(i));
  }
};

World& world() {
  static auto* const made = new World;
  return *made;
}

thread_local std::vector<Context> contexts;

struct EventHandle {
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

Gpu* current_gpu() {
  return contexts.empty() ? nullptr : reinterpret_cast<Gpu*>(contexts.back());
}

StreamThread* thread_of(void* stream) {
  if (stream != nullptr) return static_cast<StreamThread*>(stream);
  Gpu* const gpu = current_gpu();
  if (gpu == nullptr) return nullptr;
  const std::lock_guard lock(gpu->mutex);
  if (gpu->usual == nullptr) gpu->usual = new StreamThread(gpu->ordinal, gpu->most_delay_us);
  return gpu->usual;
}

EventHandle* event_of(Event event) {
  return reinterpret_cast<EventHandle*>(event);
}

bool hangs(const char* function) {
  return world().hanging.matches(function);
}

bool fails(const char* function) {
  world().counted.matches(function);
  return world().failing.matches(function);
}

bool takes_host_memory() {
  static const bool takes = stand_in::number("RUNJOB_STAND_IN_HOST_MEMORY", 0) != 0;
  return takes;
}

void* view_of(const void* memory, std::size_t bytes) {
  for (const auto& gpu : world().gpus) {
    if (void* const view = gpu->memory.view(memory, bytes)) return view;
  }
  return takes_host_memory() ? const_cast<void*>(memory) : nullptr;
}

/// Null for memory that no GPU has. Most often it is the current one's.
const Gpu* owner_of(const void* memory) {
  Gpu* const current = current_gpu();
  if (current != nullptr && current->memory.is_used(memory)) return current;
  for (const auto& gpu : world().gpus) {
    if (gpu->memory.is_used(memory)) return gpu.get();
  }
  return takes_host_memory() ? current : nullptr;
}

void* view_of(Address address, std::size_t bytes) {
  return view_of(reinterpret_cast<const void*>(address), bytes);
}

/// Copies a small block word by word, so that another thread may poll a word that the copy writes, as it may where a
/// GPU writes. Under the thread sanitizer this takes too long for a large one.
void copy_words(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  constexpr std::size_t kMostPolled = 65536;
  const bool has_words = reinterpret_cast<std::uintptr_t>(to) % kWord == 0 && bytes <= kMostPolled;
  const std::size_t words = has_words ? bytes / kWord : 0;
  auto* const words_to = static_cast<std::uint32_t*>(to);
  const auto* const bytes_from = static_cast<const std::byte*>(from);
  for (std::size_t i = 0; i < words; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes_from + i * kWord, kWord);
    __atomic_store_n(words_to + i, word, __ATOMIC_RELEASE);
  }
  std::memcpy(static_cast<std::byte*>(to) + words * kWord, bytes_from + words * kWord, bytes - words * kWord);
}

Result copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (to == nullptr || from == nullptr) return kInvalidValue;
  StreamThread* const thread = thread_of(stream);
  if (thread == nullptr) return kInvalidContext;
  thread->enqueue([=] { copy_words(to, from, bytes); });
  return kSuccess;
}

}  // namespace

#define STAND_IN(name) \
  if (fails(name)) return stand_in::number("RUNJOB_STAND_IN_ERROR", kInvalidValue)

#pragma GCC visibility push(default)
extern "C" {

Result cuInit(unsigned) {
  STAND_IN("init");
  return world().gpus.empty() ? kNoDevice : kSuccess;
}

Result cuDriverGetVersion(int* version) {
  *version = stand_in::number("RUNJOB_STAND_IN_DRIVER", 13000);
  return kSuccess;
}

Result cuGetErrorName(Result error, const char** text) {
  static const std::map<Result, const char*> names{{kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {stand_in::kGoneError, stand_in::kGoneName},
                                                   {kNoDevice, "CUDA_ERROR_NO_DEVICE"},
                                                   {stand_in::kLostError, stand_in::kLostName}};
  const auto found = names.find(error);
  *text = found == names.end() ? "CUDA_ERROR_OF_THE_STAND_IN" : found->second;
  return kSuccess;
}

Result cuGetErrorString(Result error, const char** text) {
  *text = error == kNoDevice ? "no CUDA-capable device is detected" : "the stand-in was asked to fail";
  return kSuccess;
}

Result cuDeviceGetCount(int* count) {
  *count = static_cast<int>(world().gpus.size());
  return kSuccess;
}

Result cuDeviceGet(DeviceNumber* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && static_cast<std::size_t>(ordinal) < world().gpus.size() ? kSuccess : kInvalidDevice;
}

Result cuDeviceGetName(char* name, int bytes, DeviceNumber) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "stand-in, not a GPU");
  return kSuccess;
}

Result cuDeviceGetUuid_v2(Uuid* uuid, DeviceNumber device) {
  *uuid = {};
  uuid->bytes[15] = static_cast<char>(device);
  return kSuccess;
}

Result cuDevicePrimaryCtxRetain(Context* context, DeviceNumber device) {
  STAND_IN("primary_retain");
  *context = reinterpret_cast<Context>(world().gpus[static_cast<std::size_t>(device)].get());
  return kSuccess;
}

Result cuCtxPushCurrent_v2(Context context) {
  contexts.push_back(context);
  return kSuccess;
}

Result cuCtxPopCurrent_v2(Context* context) {
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

Result cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  static thread_local CaptureMode own = 0;
  std::swap(own, *mode);
  return kSuccess;
}

Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}

Result cuStreamCreateWithPriority(Stream* stream, unsigned, int) {
  STAND_IN("stream_create");
  Gpu* const gpu = current_gpu();
  if (gpu == nullptr) return kInvalidContext;
  *stream = reinterpret_cast<Stream>(new StreamThread(gpu->ordinal, gpu->most_delay_us));
  return kSuccess;
}

Result cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  STAND_IN("stream_wait");
  const std::shared_ptr<EventState> state = event_of(event)->state;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(state->mutex);
    number = state->recorded;
  }
  StreamThread* const thread = thread_of(stream);
  if (thread == nullptr) return kInvalidContext;
  thread->enqueue([state, number] { state->wait(number); });
  return kSuccess;
}

Result cuStreamIsCapturing(Stream stream, CaptureStatus* status) {
  StreamThread* const thread = thread_of(stream);
  if (thread == nullptr) return kInvalidContext;
  *status = thread->is_capturing ? 1 : kCaptureNone;
  return kSuccess;
}

Result cuStreamSynchronize(Stream stream) {
  STAND_IN("stream_synchronize");
  StreamThread* const thread = thread_of(stream);
  if (thread == nullptr) return kInvalidContext;
  thread->synchronize();
  return kSuccess;
}

Result cuStreamQuery(Stream stream) {
  STAND_IN("stream_query");
  StreamThread* const thread = thread_of(stream);
  if (thread == nullptr) return kInvalidContext;
  return thread->is_idle() ? kSuccess : kNotReady;
}

Result cuEventCreate(Event* event, unsigned) {
  STAND_IN("event_create");
  *event = reinterpret_cast<Event>(new EventHandle);
  return kSuccess;
}

Result cuEventRecord(Event event, Stream stream) {
  STAND_IN("event_record");
  StreamThread* const thread = thread_of(stream);
  if (thread == nullptr) return kInvalidContext;
  const std::shared_ptr<EventState> state = event_of(event)->state;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(state->mutex);
    number = ++state->recorded;
  }
  thread->enqueue([state, number] { state->reach(number); });
  return kSuccess;
}

Result cuEventQuery(Event event) {
  STAND_IN("event_query");
  const std::shared_ptr<EventState> state = event_of(event)->state;
  const std::lock_guard lock(state->mutex);
  return state->done >= state->recorded ? kSuccess : kNotReady;
}

Result cuEventDestroy_v2(Event event) {
  delete event_of(event);
  return kSuccess;
}

Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  Gpu* const gpu = current_gpu();
  if (gpu == nullptr) return kInvalidContext;
  *free = gpu->memory.free_bytes();
  *total = gpu->memory.bytes();
  return kSuccess;
}

Result cuMemAlloc_v2(Address* address, std::size_t bytes) {
  if (fails("memory_allocate")) return kOutOfMemory;
  Gpu* const gpu = current_gpu();
  if (gpu == nullptr) return kInvalidContext;
  void* const memory = gpu->memory.allocate(bytes);
  *address = reinterpret_cast<Address>(memory);
  return memory == nullptr ? kOutOfMemory : kSuccess;
}

Result cuMemFree_v2(Address address) {
  for (const auto& gpu : world().gpus) {
    if (gpu->memory.free(reinterpret_cast<void*>(address))) return kSuccess;
  }
  return kInvalidValue;
}

Result cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (fails("host_allocate")) return kOutOfMemory;
  *memory = std::malloc(bytes);
  return *memory == nullptr ? kOutOfMemory : kSuccess;
}

Result cuMemFreeHost(void* memory) {
  std::free(memory);
  return kSuccess;
}

Result cuMemsetD8Async(Address to, unsigned char value, std::size_t bytes, Stream stream) {
  void* const view = view_of(to, bytes);
  StreamThread* const thread = thread_of(stream);
  if (view == nullptr) return kInvalidValue;
  if (thread == nullptr) return kInvalidContext;
  thread->enqueue([=] { std::memset(view, value, bytes); });
  return kSuccess;
}

Result cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, Stream stream) {
  STAND_IN("copy_to_host");
  return copy(to, view_of(from, bytes), bytes, stream);
}

Result cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, Stream stream) {
  STAND_IN("copy_to_device");
  return copy(view_of(to, bytes), from, bytes, stream);
}

Result cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, Stream stream) {
  return copy(view_of(to, bytes), view_of(from, bytes), bytes, stream);
}

/// The values are zeros for memory that no GPU has.
Result cuPointerGetAttributes(unsigned count, PointerAttribute* which, void** values, Address address) {
  const Gpu* const owner = owner_of(reinterpret_cast<void*>(address));
  for (unsigned i = 0; i < count; ++i) {
    if (which[i] == kPointerMemoryType) *static_cast<unsigned*>(values[i]) = owner == nullptr ? 0 : kMemoryTypeDevice;
    if (which[i] == kPointerDeviceOrdinal) *static_cast<int*>(values[i]) = owner == nullptr ? 0 : owner->ordinal;
  }
  return kSuccess;
}

const runjob_stand_in_gpu* runjob_stand_in(void) {
  static const runjob_stand_in_gpu functions{
      [](void* stream, void (*work)(void*), void* context) {
        if (StreamThread* const thread = thread_of(stream)) thread->enqueue([=] { work(context); });
      },
      [](const void* memory, std::size_t bytes) { return view_of(memory, bytes); },
      [] { return current_gpu() == nullptr ? -1 : current_gpu()->ordinal; },
      [](const char* function) { return fails(function) ? 1 : 0; },
      [](const char* function) { return hangs(function) ? 1 : 0; },
      [](int gpu) { world().gpus[static_cast<std::size_t>(gpu)]->room.enter(); },
      [](int gpu) { world().gpus[static_cast<std::size_t>(gpu)]->room.leave(); },
      [](const char* function) { return world().counted.count(function); }};
  return &functions;
}

void runjob_stand_in_set_capturing(void* stream, int is_capturing) {
  if (StreamThread* const thread = thread_of(stream)) thread->is_capturing = is_capturing != 0;
}

}  // extern "C"
#pragma GCC visibility pop
