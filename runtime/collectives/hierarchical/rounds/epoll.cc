#include "runtime/collectives/hierarchical/rounds/epoll.hpp"

#include <cerrno>
#include <sys/epoll.h>

#include "base/error.hpp"

namespace runjob::runtime {

UniqueFd epoll_of_inputs(std::initializer_list<int> descriptors) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) throw system_error("epoll_create1", errno);
  for (const int descriptor : descriptors) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) throw system_error("epoll_ctl", errno);
  }
  return epoll;
}

}  // namespace runjob::runtime
