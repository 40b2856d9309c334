#pragma once

#include <cstddef>

#include "runtime/collectives/cuda/driver_abi.hpp"

/// The part of NCCL's interface that runjob uses. It is declared here, so that runjob is built without NCCL's headers
/// and runs with the libnccl.so.2 that the process has, from version 2.18 on. A test compares the declarations with the
/// installed header.
///
/// Source  nccl.h of NCCL 2.28.9; ncclCommRevoke is new there, the rest is the same in 2.18.
namespace runjob::runtime::nccl {

using Result = int;
inline constexpr Result kSuccess = 0, kInProgress = 7;

struct CommObject;
using Comm = CommObject*;

struct UniqueId {
  char bytes[128];
};

/// An enumeration, so that the compiler names each `switch` that lacks a type.
enum DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9
};

using RedOp = int;
inline constexpr RedOp kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4;

/// Where the factor of a reduction lies.
using Residence = int;
inline constexpr Residence kHostImmediate = 1;

/// name of the member, exported symbol, arguments
#define RUNJOB_NCCL_FUNCTIONS(X)                                                                                     \
  X(get_version, "ncclGetVersion", (int* version))                                                                   \
  X(get_unique_id, "ncclGetUniqueId", (UniqueId * id))                                                               \
  X(init_rank, "ncclCommInitRank", (Comm * comm, int size, UniqueId id, int rank))                                   \
  X(destroy, "ncclCommDestroy", (Comm comm))                                                                         \
  X(abort, "ncclCommAbort", (Comm comm))                                                                             \
  X(async_error, "ncclCommGetAsyncError", (Comm comm, Result * error))                                               \
  X(make_scaled_sum, "ncclRedOpCreatePreMulSum",                                                                     \
    (RedOp * op, void* factor, DataType dtype, Residence residence, Comm comm))                                      \
  X(all_reduce, "ncclAllReduce",                                                                                     \
    (const void* in, void* out, std::size_t count, DataType dtype, RedOp op, Comm comm, cuda::Stream stream))        \
  X(reduce, "ncclReduce",                                                                                            \
    (const void* in, void* out, std::size_t count, DataType dtype, RedOp op, int root, Comm comm,                    \
     cuda::Stream stream))                                                                                           \
  X(broadcast, "ncclBroadcast",                                                                                      \
    (const void* in, void* out, std::size_t count, DataType dtype, int root, Comm comm, cuda::Stream stream))        \
  X(all_gather, "ncclAllGather",                                                                                     \
    (const void* in, void* out, std::size_t count, DataType dtype, Comm comm, cuda::Stream stream))                  \
  X(reduce_scatter, "ncclReduceScatter",                                                                             \
    (const void* in, void* out, std::size_t count, DataType dtype, RedOp op, Comm comm, cuda::Stream stream))        \
  X(send, "ncclSend", (const void* in, std::size_t count, DataType dtype, int peer, Comm comm, cuda::Stream stream)) \
  X(receive, "ncclRecv", (void* out, std::size_t count, DataType dtype, int peer, Comm comm, cuda::Stream stream))   \
  X(group_start, "ncclGroupStart", ())                                                                               \
  X(group_end, "ncclGroupEnd", ())

}  // namespace runjob::runtime::nccl
