#include "base/event_fd.hpp"

#include <poll.h>

#include "tests/catch.hpp"

namespace {

bool is_set(const runjob::EventFd& event) {
  pollfd descriptor{event.get(), POLLIN, 0};
  return ::poll(&descriptor, 1, 0) == 1;
}

}  // namespace

TEST_CASE("an event is set until it is cleared, however often it was set", "[base]") {
  const runjob::EventFd event;
  CHECK_FALSE(is_set(event));
  event.set();
  event.set();
  CHECK(is_set(event));
  event.clear();
  CHECK_FALSE(is_set(event));
  event.clear();  // does not wait
}
