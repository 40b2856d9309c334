#include "base/event_fd.hpp"

#include <cerrno>
#include <cstdint>
#include <sys/eventfd.h>

#include "base/error.hpp"

namespace runjob {

EventFd::EventFd() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_) throw system_error("eventfd", errno);
}

void EventFd::set() const noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(fd_.get(), &one, sizeof one));  // full means set
}

void EventFd::clear() const noexcept {
  std::uint64_t count = 0;
  static_cast<void>(!::read(fd_.get(), &count, sizeof count));
}

}  // namespace runjob
