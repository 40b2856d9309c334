#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/types.h>

namespace runjob::runtime {

/// Copies `bytes` at `address` of process `process`, which is rank `rank`, to `to`: one copy, made by the kernel (cross
/// memory attach). The process may be this one.
/// Errors  Error naming the rank: kPeerLost when the process is gone, kSystem when the kernel forbids it or nothing is there.
/// Source  process_vm_readv(2).
void read_process(int rank, pid_t process, std::uint64_t address, void* to, std::size_t bytes);

}  // namespace runjob::runtime
