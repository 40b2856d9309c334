#include "runtime/collectives/shm/memory/process_memory.hpp"

#include <cerrno>
#include <sys/uio.h>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {

void read_process(int rank, pid_t process, std::uint64_t address, void* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const iovec local{static_cast<std::byte*>(to) + done, bytes - done};
    const iovec remote{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address + done)), bytes - done};
    const ssize_t count = ::process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (count > 0) {
      // The count is smaller if the next page is missing; the next call then fails with the reason.
      done += static_cast<std::size_t>(count);
      continue;
    }
    const int why = count == 0 ? EFAULT : errno;
    throw Error(why == ESRCH ? Errc::kPeerLost : Errc::kSystem,
                fmt::format("reading memory of rank {} (process {}): {}", rank, process,
                            system_error("process_vm_readv", why).what()));
  }
}

}  // namespace runjob::runtime
