#pragma once

#include <cstddef>
#include <cstdint>

/// Stand-ins for libcuda.so.1 and libnccl.so.2, for machines without a GPU: libraries of the same names, which runjob
/// opens as it opens the real ones. They call themselves stand-ins wherever a name is printed.
///
/// GPU       RUNJOB_STAND_IN_GPUS of them, 8 by default, with RUNJOB_STAND_IN_MIB MiB of memory, 1024 by default. It is
///           mapped without access at the addresses that callers get, so that a touch by the host is a crash; the
///           stand-ins reach it at a second address. Freed memory is given out again by the next allocation of its
///           size. With RUNJOB_STAND_IN_HOST_MEMORY=1 memory of the host is taken for the GPU's too, so that tensors of
///           a framework without GPUs can play its tensors.
/// Streams   are threads. Each piece of work begins after a random delay of at most RUNJOB_STAND_IN_DELAY_US, 100 by
///           default. With -1 work is done by the call that queues it, so that it waits for nothing: for one rank.
/// Kernels   RUNJOB_STAND_IN_KERNELS of them run on a GPU at the same time, 64 by default. Those of several streams
///           begin in any order.
/// Failures  RUNJOB_STAND_IN_FAIL is a list such as `ncclAllReduce:3,event_record:1`: the third call of that function in
///           this process fails. A function of the driver has the name of its member in cuda::Driver, which does not
///           depend on the vendor; it fails with the error number RUNJOB_STAND_IN_ERROR, 1 by default. `kernel` in place
///           of a function is a kernel of NCCL, whose failure shows as an asynchronous error.
/// Hangs     RUNJOB_STAND_IN_HANG is such a list of functions of NCCL and kernels that do not return. A collective and a
///           kernel return when their communicator is aborted, every other call never.
/// Ranks     of NCCL meet in a file of RUNJOB_STAND_IN_FOLDER, /dev/shm by default: one that hosts share lets their
///           ranks meet.
/// Counts    RUNJOB_STAND_IN_COUNT lists functions whose calls are counted.
extern "C" {

/// What libnccl's stand-in needs of libcuda's.
struct runjob_stand_in_gpu {
  void (*enqueue)(void* stream, void (*work)(void*), void* context);  ///< to the stream; NULL: the default one
  void* (*view)(const void* memory, std::size_t bytes);               ///< null for memory that is not the GPU's
  int (*current)(void);                                               ///< ordinal of the thread's GPU; -1 for none
  int (*fails)(const char* function);                                 ///< 1: this call is to fail; may never return
  int (*hangs)(const char* function);                                 ///< 1: this call is to hang
  void (*begin_kernel)(int gpu);                                      ///< waits until there is room for one more
  void (*end_kernel)(int gpu);
  int (*calls)(const char* function);  ///< so far, of a function of RUNJOB_STAND_IN_COUNT
};

/// Exported by libcuda's stand-in alone. For tests too, which read and write the GPU's memory with view().
const runjob_stand_in_gpu* runjob_stand_in(void);
/// Lets cuStreamIsCapturing() say that the stream is being captured.
void runjob_stand_in_set_capturing(void* stream, int is_capturing);
}
