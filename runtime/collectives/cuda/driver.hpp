#pragma once

#include <string>

#include "base/status.hpp"
#include "runtime/collectives/cuda/driver_abi.hpp"
#include "runtime/collectives/cuda/vendor.hpp"

namespace runjob::runtime::cuda {

/// The functions of CUDA's driver, libcuda.so.1, which is opened at run time.
struct Driver {
#define RUNJOB_CUDA_MEMBER(member, symbol, arguments) Result(*member) arguments = nullptr;
  RUNJOB_CUDA_FUNCTIONS(RUNJOB_CUDA_MEMBER)
#undef RUNJOB_CUDA_MEMBER
  const Vendor* vendor = nullptr;  ///< its maker
  std::string path;                ///< of the file
  int version = 0;                 ///< the newest one of the platform that it supports: 13000 is 13.0
};

/// The driver, opened and initialised by the first call that succeeds, and kept. Makes no context. Any thread.
/// Errors  Error(kUnavailable): there is none, it is too old, or it finds no GPU; the text has the file.
const Driver& driver();

/// True in a child of fork() whose parent had opened the driver: CUDA does not work there, and locks of the parent's
/// threads may be held for ever, so that no GPU must be touched. Any thread; takes no lock.
bool is_forked();
/// Errors  Error(kUnavailable) when is_forked().
void refuse_forked();

/// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)"
std::string error_text(const Driver& driver, Result result);
/// Throws unless `result` is a success. `action` is what was tried.
/// Errors  Error(kDevice): "`action`: `error_text`"; it advises on a GPU that is lost, after which the process must
///         end.
void check(Result result, const char* action);

/// Returns kSuccess when the work that was recorded last in `event`, or all work that is queued on `stream`, is done,
/// kNotReady before, or an error. Each query is made by one of these. The context must be current.
inline Result query(Event event) {
  return driver().event_query(event);
}
inline Result query(Stream stream) {
  return driver().stream_query(stream);
}

/// "13.0"
std::string version_text(int version);

}  // namespace runjob::runtime::cuda
