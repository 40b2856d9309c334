#pragma once

#include <cstddef>

/// The part of CUDA's driver interface that runjob uses. It is declared here, so that runjob is built without CUDA's
/// headers and runs with any libcuda.so.1 from CUDA 12.0 on. A test compares the declarations with the installed
/// headers.
///
/// Source  CUDA driver API 13.0, cuda.h; functions with a suffix such as _v2 are what the header's names stand for.
namespace runjob::runtime::cuda {

using Result = int;
inline constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kDeinitialized = 4, kNotReady = 600,
                        kStreamCaptureUnsupported = 900;

using DeviceNumber = int;
struct ContextObject;
struct StreamObject;
struct EventObject;
using Context = ContextObject*;
using Stream = StreamObject*;
using Event = EventObject*;
using Address = unsigned long long;

struct Uuid {
  char bytes[16];
};

inline constexpr unsigned kStreamNonBlocking = 1, kEventDisableTiming = 2;

/// The state of a stream: whether it is being captured into a graph.
using CaptureStatus = int;
inline constexpr CaptureStatus kCaptureNone = 0;
/// A thread's mode: which calls an unfinished capture of another stream forbids to it.
using CaptureMode = int;
inline constexpr CaptureMode kCaptureRelaxed = 2;

using PointerAttribute = int;
inline constexpr PointerAttribute kPointerMemoryType = 2, kPointerDeviceOrdinal = 9;
inline constexpr unsigned kMemoryTypeDevice = 2;

/// name of the member, exported symbol, arguments
#define RUNJOB_CUDA_FUNCTIONS(X)                                                                              \
  X(init, "cuInit", (unsigned flags))                                                                         \
  X(driver_version, "cuDriverGetVersion", (int* version))                                                     \
  X(error_name, "cuGetErrorName", (Result error, const char** text))                                          \
  X(error_text, "cuGetErrorString", (Result error, const char** text))                                        \
  X(device_count, "cuDeviceGetCount", (int* count))                                                           \
  X(device_get, "cuDeviceGet", (DeviceNumber * device, int ordinal))                                          \
  X(device_name, "cuDeviceGetName", (char* name, int bytes, DeviceNumber device))                             \
  X(device_uuid, "cuDeviceGetUuid_v2", (Uuid * uuid, DeviceNumber device))                                    \
  X(primary_retain, "cuDevicePrimaryCtxRetain", (Context * context, DeviceNumber device))                     \
  X(context_push, "cuCtxPushCurrent_v2", (Context context))                                                   \
  X(context_pop, "cuCtxPopCurrent_v2", (Context * context))                                                   \
  X(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (CaptureMode * mode))                         \
  X(priority_range, "cuCtxGetStreamPriorityRange", (int* least, int* greatest))                               \
  X(stream_create, "cuStreamCreateWithPriority", (Stream * stream, unsigned flags, int priority))             \
  X(stream_wait, "cuStreamWaitEvent", (Stream stream, Event event, unsigned flags))                           \
  X(stream_is_capturing, "cuStreamIsCapturing", (Stream stream, CaptureStatus * status))                      \
  X(stream_synchronize, "cuStreamSynchronize", (Stream stream))                                               \
  X(stream_query, "cuStreamQuery", (Stream stream))                                                           \
  X(event_create, "cuEventCreate", (Event * event, unsigned flags))                                           \
  X(event_record, "cuEventRecord", (Event event, Stream stream))                                              \
  X(event_query, "cuEventQuery", (Event event))                                                               \
  X(event_destroy, "cuEventDestroy_v2", (Event event))                                                        \
  X(memory_info, "cuMemGetInfo_v2", (std::size_t * free, std::size_t * total))                                \
  X(memory_allocate, "cuMemAlloc_v2", (Address * address, std::size_t bytes))                                 \
  X(memory_free, "cuMemFree_v2", (Address address))                                                           \
  X(host_allocate, "cuMemHostAlloc", (void** memory, std::size_t bytes, unsigned flags))                      \
  X(host_free, "cuMemFreeHost", (void* memory))                                                               \
  X(set_bytes, "cuMemsetD8Async", (Address to, unsigned char value, std::size_t bytes, Stream stream))        \
  X(copy_to_host, "cuMemcpyDtoHAsync_v2", (void* to, Address from, std::size_t bytes, Stream stream))         \
  X(copy_to_device, "cuMemcpyHtoDAsync_v2", (Address to, const void* from, std::size_t bytes, Stream stream)) \
  X(copy_on_device, "cuMemcpyDtoDAsync_v2", (Address to, Address from, std::size_t bytes, Stream stream))     \
  X(pointer_attributes, "cuPointerGetAttributes",                                                             \
    (unsigned count, PointerAttribute* which, void** values, Address address))

}  // namespace runjob::runtime::cuda
