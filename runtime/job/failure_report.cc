#include "runtime/job/failure_report.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "rendezvous/client.hpp"

namespace runjob::runtime {

void FailureReport::report(const rendezvous::Failing& failing) {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(reported_[failing.own ? 1 : 0], true)) return;
  }
  try {
    rendezvous::Client(address_, rank_).failing(failing);
  } catch (const Error& error) {
    log::debug("could not report a failure to the launcher: {}", error.what());
  }
}

}  // namespace runjob::runtime
