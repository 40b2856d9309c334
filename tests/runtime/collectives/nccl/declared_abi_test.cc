#include <cstdio>
#include <set>
#include <string>
#include <type_traits>

#include "runtime/collectives/cuda/driver_abi.hpp"
#include "runtime/collectives/nccl/nccl_abi.hpp"
#include "tests/catch.hpp"

#if __has_include(<cuda.h>)
#include <cuda.h>
#define RUNJOB_HAS_CUDA_HEADER
#endif
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
#define RUNJOB_HAS_NCCL_HEADER
#endif

/// What runjob declares of CUDA's driver and of NCCL, against their headers where these are installed.

namespace {

using namespace runjob::runtime;

/// True when a caller that was compiled with `Ours` passes what a function that was compiled with `Theirs` takes.
template <class Ours, class Theirs>
constexpr bool is_same_abi() {
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using Our = std::remove_cv_t<std::remove_pointer_t<Ours>>;
    using Their = std::remove_cv_t<std::remove_pointer_t<Theirs>>;
    if constexpr (std::is_class_v<Our> || std::is_void_v<Our>) {
      return std::is_class_v<Our> == std::is_class_v<Their>;
    } else {
      return is_same_abi<Our, Their>();
    }
  } else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>) {
    return sizeof(Ours) == sizeof(Theirs);
  } else {
    const auto is_number = [](auto* of) {
      using Type = std::remove_pointer_t<decltype(of)>;
      return std::is_integral_v<Type> || std::is_enum_v<Type>;
    };
    return is_number(static_cast<Ours*>(nullptr)) && is_number(static_cast<Theirs*>(nullptr)) &&
           sizeof(Ours) == sizeof(Theirs);
  }
}

template <class Ours, class Theirs>
struct IsSameFunction : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct IsSameFunction<R (*)(A...), S (*)(B...)>
    : std::bool_constant<is_same_abi<R, S>() && (is_same_abi<A, B>() && ...)> {
};

struct CudaFunctions {
  using Result = cuda::Result;
  using Stream = cuda::Stream;
  using Event = cuda::Event;
  using Context = cuda::Context;
  using Address = cuda::Address;
  using DeviceNumber = cuda::DeviceNumber;
  using Uuid = cuda::Uuid;
  using CaptureMode = cuda::CaptureMode;
  using CaptureStatus = cuda::CaptureStatus;
  using PointerAttribute = cuda::PointerAttribute;
#define RUNJOB_MEMBER(member, symbol, arguments) Result(*member) arguments = nullptr;
  RUNJOB_CUDA_FUNCTIONS(RUNJOB_MEMBER)
#undef RUNJOB_MEMBER
};

struct NcclFunctions {
  using Comm = nccl::Comm;
  using UniqueId = nccl::UniqueId;
  using Result = nccl::Result;
  using DataType = nccl::DataType;
  using RedOp = nccl::RedOp;
  using Residence = nccl::Residence;
#define RUNJOB_MEMBER(member, symbol, arguments) Result(*member) arguments = nullptr;
  RUNJOB_NCCL_FUNCTIONS(RUNJOB_MEMBER)
#undef RUNJOB_MEMBER
};

static_assert(is_same_abi<int, unsigned>() && !is_same_abi<int, long>() && !is_same_abi<int*, long*>());
static_assert(!is_same_abi<int, void*>() && is_same_abi<const char*, char*>());

}  // namespace

/// Compares one function; `compared` is what the names are collected in.
#define RUNJOB_COMPARE(table, member, symbol)                                             \
  static_assert(IsSameFunction<decltype(table::member), decltype(&::symbol)>(), #symbol); \
  compared.insert(#symbol)

TEST_CASE("what runjob declares of CUDA's driver is what cuda.h declares", "[unit]") {
#ifndef RUNJOB_HAS_CUDA_HEADER
  std::puts("skipped: there is no cuda.h to compare with");
#else
  using namespace cuda;
  static_assert(kSuccess == CUDA_SUCCESS && kInvalidValue == CUDA_ERROR_INVALID_VALUE &&
                kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY && kDeinitialized == CUDA_ERROR_DEINITIALIZED &&
                kNotReady == CUDA_ERROR_NOT_READY &&
                kStreamCaptureUnsupported == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING && kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
  static_assert(kCaptureNone == CU_STREAM_CAPTURE_STATUS_NONE && kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
  static_assert(kPointerMemoryType == CU_POINTER_ATTRIBUTE_MEMORY_TYPE &&
                kPointerDeviceOrdinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL &&
                kMemoryTypeDevice == CU_MEMORYTYPE_DEVICE);
  static_assert(sizeof(Uuid) == sizeof(CUuuid));
  std::set<std::string> compared, declared;
  RUNJOB_COMPARE(CudaFunctions, init, cuInit);
  RUNJOB_COMPARE(CudaFunctions, driver_version, cuDriverGetVersion);
  RUNJOB_COMPARE(CudaFunctions, error_name, cuGetErrorName);
  RUNJOB_COMPARE(CudaFunctions, error_text, cuGetErrorString);
  RUNJOB_COMPARE(CudaFunctions, device_count, cuDeviceGetCount);
  RUNJOB_COMPARE(CudaFunctions, device_get, cuDeviceGet);
  RUNJOB_COMPARE(CudaFunctions, device_name, cuDeviceGetName);
  RUNJOB_COMPARE(CudaFunctions, device_uuid, cuDeviceGetUuid_v2);
  RUNJOB_COMPARE(CudaFunctions, primary_retain, cuDevicePrimaryCtxRetain);
  RUNJOB_COMPARE(CudaFunctions, context_push, cuCtxPushCurrent_v2);
  RUNJOB_COMPARE(CudaFunctions, context_pop, cuCtxPopCurrent_v2);
  RUNJOB_COMPARE(CudaFunctions, exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
  RUNJOB_COMPARE(CudaFunctions, priority_range, cuCtxGetStreamPriorityRange);
  RUNJOB_COMPARE(CudaFunctions, stream_create, cuStreamCreateWithPriority);
  RUNJOB_COMPARE(CudaFunctions, stream_wait, cuStreamWaitEvent);
  RUNJOB_COMPARE(CudaFunctions, stream_is_capturing, cuStreamIsCapturing);
  RUNJOB_COMPARE(CudaFunctions, stream_synchronize, cuStreamSynchronize);
  RUNJOB_COMPARE(CudaFunctions, stream_query, cuStreamQuery);
  RUNJOB_COMPARE(CudaFunctions, event_create, cuEventCreate);
  RUNJOB_COMPARE(CudaFunctions, event_record, cuEventRecord);
  RUNJOB_COMPARE(CudaFunctions, event_query, cuEventQuery);
  RUNJOB_COMPARE(CudaFunctions, event_destroy, cuEventDestroy_v2);
  RUNJOB_COMPARE(CudaFunctions, memory_info, cuMemGetInfo_v2);
  RUNJOB_COMPARE(CudaFunctions, memory_allocate, cuMemAlloc_v2);
  RUNJOB_COMPARE(CudaFunctions, memory_free, cuMemFree_v2);
  RUNJOB_COMPARE(CudaFunctions, host_allocate, cuMemHostAlloc);
  RUNJOB_COMPARE(CudaFunctions, host_free, cuMemFreeHost);
  RUNJOB_COMPARE(CudaFunctions, set_bytes, cuMemsetD8Async);
  RUNJOB_COMPARE(CudaFunctions, copy_to_host, cuMemcpyDtoHAsync_v2);
  RUNJOB_COMPARE(CudaFunctions, copy_to_device, cuMemcpyHtoDAsync_v2);
  RUNJOB_COMPARE(CudaFunctions, copy_on_device, cuMemcpyDtoDAsync_v2);
  RUNJOB_COMPARE(CudaFunctions, pointer_attributes, cuPointerGetAttributes);
#define RUNJOB_NAME(member, symbol, arguments) declared.insert(symbol);
  RUNJOB_CUDA_FUNCTIONS(RUNJOB_NAME)
#undef RUNJOB_NAME
  CHECK(compared == declared);
#endif
}

TEST_CASE("what runjob declares of NCCL is what nccl.h declares", "[unit]") {
#ifndef RUNJOB_HAS_NCCL_HEADER
  std::puts("skipped: there is no nccl.h to compare with, or no cuda_runtime.h, which it includes");
#else
  using namespace nccl;
  static_assert(kSuccess == ncclSuccess && kInProgress == ncclInProgress);
  constexpr auto same = [](int ours, int theirs) { return ours == theirs; };  // of two enumerations
  static_assert(same(kInt8, ncclInt8) && same(kUint8, ncclUint8) && same(kInt32, ncclInt32) &&
                same(kInt64, ncclInt64) && same(kFloat16, ncclFloat16) && same(kFloat32, ncclFloat32) &&
                same(kFloat64, ncclFloat64) && same(kBfloat16, ncclBfloat16));
  static_assert(kSum == ncclSum && kProd == ncclProd && kMax == ncclMax && kMin == ncclMin && kAvg == ncclAvg);
  static_assert(kHostImmediate == ncclScalarHostImmediate && sizeof(UniqueId) == sizeof(ncclUniqueId));
  std::set<std::string> compared, declared;
  RUNJOB_COMPARE(NcclFunctions, get_version, ncclGetVersion);
  RUNJOB_COMPARE(NcclFunctions, get_unique_id, ncclGetUniqueId);
  RUNJOB_COMPARE(NcclFunctions, init_rank, ncclCommInitRank);
  RUNJOB_COMPARE(NcclFunctions, destroy, ncclCommDestroy);
  RUNJOB_COMPARE(NcclFunctions, abort, ncclCommAbort);
  RUNJOB_COMPARE(NcclFunctions, async_error, ncclCommGetAsyncError);
  RUNJOB_COMPARE(NcclFunctions, make_scaled_sum, ncclRedOpCreatePreMulSum);
  RUNJOB_COMPARE(NcclFunctions, all_reduce, ncclAllReduce);
  RUNJOB_COMPARE(NcclFunctions, reduce, ncclReduce);
  RUNJOB_COMPARE(NcclFunctions, broadcast, ncclBroadcast);
  RUNJOB_COMPARE(NcclFunctions, all_gather, ncclAllGather);
  RUNJOB_COMPARE(NcclFunctions, reduce_scatter, ncclReduceScatter);
  RUNJOB_COMPARE(NcclFunctions, send, ncclSend);
  RUNJOB_COMPARE(NcclFunctions, receive, ncclRecv);
  RUNJOB_COMPARE(NcclFunctions, group_start, ncclGroupStart);
  RUNJOB_COMPARE(NcclFunctions, group_end, ncclGroupEnd);
#define RUNJOB_NAME(member, symbol, arguments) declared.insert(symbol);
  RUNJOB_NCCL_FUNCTIONS(RUNJOB_NAME)
#undef RUNJOB_NAME
  CHECK(compared == declared);
#endif
}
