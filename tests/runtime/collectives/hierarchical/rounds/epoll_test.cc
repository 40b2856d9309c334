#include "runtime/collectives/hierarchical/rounds/epoll.hpp"

#include <sys/epoll.h>

#include "base/error.hpp"
#include "base/event_fd.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace runjob::runtime;

TEST_CASE("an epoll names the descriptors that have input", "[runtime][unit]") {
  EventFd first, second;
  const UniqueFd epoll = epoll_of_inputs({first.get(), second.get()});
  epoll_event events[3];
  CHECK(::epoll_wait(epoll.get(), events, 3, 0) == 0);
  second.set();
  REQUIRE(::epoll_wait(epoll.get(), events, 3, 0) == 1);
  CHECK(events[0].data.fd == second.get());
  first.set();
  CHECK(::epoll_wait(epoll.get(), events, 3, 0) == 2);
}

TEST_CASE("an epoll of a descriptor that is not open is an error", "[runtime][unit]") {
  CHECK_THROWS_AS(epoll_of_inputs({-1}), Error);
}
