#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/types.h>

namespace runjob::runtime {

/// Copies `bytes` bytes at `address` of process `process`, which is rank `rank`, to `to`. The kernel makes the one copy
/// (cross memory attach). The process may be the calling one.
/// Threads  any.
/// Errors   Error naming the rank: kPeerLost if the process has exited, kSystem if the kernel forbids it or no memory
///          is there.
/// Source   process_vm_readv(2).
void read_process(int rank, pid_t process, std::uint64_t address, void* to, std::size_t bytes);

}  // namespace runjob::runtime
