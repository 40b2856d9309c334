#pragma once

#include <optional>
#include <string>

#include "base/status.hpp"
#include "runtime/collectives/nccl/nccl_abi.hpp"

namespace runjob::runtime::nccl {

/// The functions of an NCCL that was opened at run time. They may be called as NCCL permits.
struct Library {
#define RUNJOB_NCCL_MEMBER(member, symbol, arguments) Result(*member) arguments = nullptr;
  RUNJOB_NCCL_FUNCTIONS(RUNJOB_NCCL_MEMBER)
#undef RUNJOB_NCCL_MEMBER
  const char* (*error_text)(Result result) = nullptr;
  const char* (*last_error)(Comm comm) = nullptr;
  Result (*revoke)(Comm comm, int flags) = nullptr;  ///< null before NCCL 2.28.9
  std::string path;                                  ///< of the file
  int version = 0;                                   ///< 22809 is 2.28.9
};

/// The NCCL of this process: the file `chosen`, which RUNJOB_NCCL_LIBRARY names; if that is empty, the NCCL that is
/// loaded already, such as PyTorch's; otherwise the one that the loader finds. The first call that succeeds opens it;
/// later ones return the same NCCL, whatever they choose. No driver is needed, so that a host without one can name it.
/// Owner    the process, to its end.
/// Threads  any.
/// Errors   Error(kUnavailable) with the file: it cannot be opened, or is too old.
const Library& library(const std::string& chosen);

/// Throws unless `result` is a success. `action`: a phrase for the message, such as "making a communicator". `comm`:
/// the communicator of the call; null for none.
/// Errors  Error(kDevice): "`action`: NCCL 2.28.9: unhandled cuda error: ..."
void check(const Library& library, Result result, const char* action, Comm comm = nullptr);

/// "2.28.9"
std::string version_text(int version);

}  // namespace runjob::runtime::nccl
