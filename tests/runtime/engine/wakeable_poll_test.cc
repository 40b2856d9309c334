#include "runtime/engine/wakeable_poll.hpp"

#include <future>
#include <unistd.h>

#include "tests/catch.hpp"

using runjob::UniqueFd;
using runjob::runtime::WakeablePoll;

TEST_CASE("a poll ends with an event, a wake before or after its begin, or the deadline", "[runtime][unit]") {
  WakeablePoll poll;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const UniqueFd reader(ends[0]), writer(ends[1]);
  std::vector<pollfd> descriptors{{reader.get(), POLLIN, 0}};

  poll.wake();
  poll.wait(descriptors, {});
  CHECK(descriptors.size() == 1);
  CHECK(descriptors[0].revents == 0);

  auto woken = std::async(std::launch::async, [&] { poll.wait(descriptors, {}); });
  poll.wake();
  woken.get();

  const auto deadline = WakeablePoll::Clock::now() + std::chrono::milliseconds(3);
  poll.wait(descriptors, {deadline + std::chrono::hours(1), std::nullopt, deadline});
  CHECK(WakeablePoll::Clock::now() >= deadline);

  REQUIRE(::write(writer.get(), "x", 1) == 1);
  poll.wait(descriptors, {});
  CHECK(descriptors[0].revents == POLLIN);
}
