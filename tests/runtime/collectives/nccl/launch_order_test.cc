#include "runtime/collectives/nccl/launch_order.hpp"

#include <algorithm>
#include <future>
#include <optional>

#include "tests/catch.hpp"

using namespace runjob::runtime::nccl;
using Turn = LaunchOrder::Turn;

namespace {

const std::vector<int> kFirst{0, 1}, kSecond{0, 2};

bool never() {
  return false;
}

/// True when it is the operation's turn without anything else being launched.
bool is_next(Turn& turn, LaunchOrder::Time time) {
  return turn.wait(time, [] { return true; });
}

}  // namespace

TEST_CASE("operations of several communicators are launched by the latest of the ranks' times", "[unit]") {
  LaunchOrder order;
  std::optional<Turn> early(std::in_place, order, kFirst), late(std::in_place, order, kSecond);
  CHECK(early->proposal() < late->proposal());
  CHECK(is_next(*early, early->proposal()));
  CHECK_FALSE(is_next(*late, late->proposal()));
  CHECK_FALSE(is_next(*early, late->proposal() + 5));  // another rank has proposed a later time
  CHECK(is_next(*late, late->proposal()));
  late.reset();
  CHECK(is_next(*early, 7));
  const Turn next(order, kSecond);
  CHECK(next.proposal() > 7);  // later than all that may be launched already
}

TEST_CASE("equal times are ordered by the communicators' ranks, in the same way on all ranks", "[unit]") {
  LaunchOrder order;
  Turn second(order, kSecond), first(order, kFirst);
  const LaunchOrder::Time time = std::max(first.proposal(), second.proposal());
  CHECK_FALSE(is_next(second, time + 1));
  CHECK(is_next(first, time + 1));
  CHECK_FALSE(is_next(second, time + 1));
}

TEST_CASE("a launch waits for the one before it and no longer", "[unit]") {
  LaunchOrder order;
  std::optional<Turn> early(std::in_place, order, kFirst);
  Turn late(order, kSecond);
  auto waits = std::async(std::launch::async, [&] { return late.wait(late.proposal(), never); });
  CHECK(waits.wait_for(std::chrono::milliseconds(30)) == std::future_status::timeout);
  early.reset();
  CHECK(waits.get());
}
