#include "runtime/collectives/hierarchical/rounds/idle_receiver.hpp"

#include <chrono>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::EventFd;

namespace {

/// A descriptor with something to receive whenever it is set.
struct Arrivals {
  /// Waits until all that has arrived was received, at most a minute.
  bool are_received(int times) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (received < times && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return received >= times;
  }

  EventFd arrived;
  std::atomic<int> received{0};
  IdleReceiver receiver{arrived.get(), [this] {
                          arrived.clear();
                          ++received;
                        }};
};

}  // namespace

TEST_CASE("the thread receives while the driver is away", "[runtime]") {
  Arrivals arrivals;
  for (int i = 1; i <= 3; ++i) {
    arrivals.arrived.set();
    CHECK(arrivals.are_received(i));
  }
}

TEST_CASE("the thread leaves to the driver what comes while it is inside, and takes over after it has left",
          "[runtime]") {
  Arrivals arrivals;
  for (int i = 0; i < 20; ++i) {
    const int before = arrivals.received;
    arrivals.receiver.enter();
    CHECK(arrivals.receiver.is_driver_inside());
    arrivals.arrived.set();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // enough for a thread that would not stand aside
    CHECK(arrivals.received == before);
    arrivals.receiver.leave();
    CHECK_FALSE(arrivals.receiver.is_driver_inside());
    CHECK(arrivals.are_received(before + 1));
  }
}

TEST_CASE("a driver that expects to be away is replaced, and may come back", "[runtime]") {
  Arrivals arrivals;
  for (int i = 0; i < 100; ++i) {
    arrivals.receiver.enter();
    arrivals.receiver.leave();
    arrivals.receiver.expect_absence();
    arrivals.arrived.set();
    const int before = arrivals.received;
    CHECK(arrivals.are_received(before));
  }
  arrivals.arrived.set();
  CHECK(arrivals.are_received(1));
}
