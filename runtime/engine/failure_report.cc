#include "runtime/engine/failure_report.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "rendezvous/client.hpp"

namespace runjob::runtime {

void FailureReport::tell(bool own, const std::string& reason) {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(told_[own ? 1 : 0], true)) return;
  }
  try {
    rendezvous::Client(address_, rank_).failing({own, reason});
  } catch (const Error& error) {
    log::debug("could not tell the launcher of a failure: {}", error.what());
  }
}

}  // namespace runjob::runtime
