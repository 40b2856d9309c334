#include "runtime/collectives/shm/group.hpp"

#include <future>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;

namespace {

/// The error of a wait of rank 0 for rank 1's first field; "" for none.
std::future<std::string> waiting(Group& group, std::uint64_t value) {
  return std::async(std::launch::async, [&group, value]() -> std::string {
    try {
      group.wait(1, group.fields(1).progress.filled, value);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  });
}

}  // namespace

TEST_CASE("ranks with fewer processors than ranks do not spin", "[runtime][unit]") {
  CHECK(Patience::for_ranks(2, 2).spin.count() > 0);
  CHECK(Patience::for_ranks(3, 2).spin.count() == 0);
  CHECK(Patience::for_ranks(2, 1.5).yields > 0);
}

TEST_CASE("a wait ends when the field has reached its value, however the rank waits", "[runtime][unit]") {
  const Patience patience = GENERATE(Patience{}, Patience{std::chrono::seconds(60), 0}, Patience{{}, 1000});
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Group waiter(segment.data(), layout, options_of(0, patience)), writer(segment.data(), layout, options_of(1));
  auto result = waiting(waiter, 2);
  writer.publish(writer.own().progress.filled, 1);
  writer.publish(writer.own().progress.filled, 2);
  CHECK(result.get().empty());
  waiter.wait(1, waiter.fields(1).progress.filled, 2);  // at once
}

TEST_CASE("a wait that takes too long names the rank and the remedy", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Group group(segment.data(), layout, options_of(0, {}, std::chrono::milliseconds(20)));
  try {
    group.wait(1, group.fields(1).progress.filled, 1);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kTimeout);
    CHECK_THAT(std::string(error.what()), ContainsSubstring("waited 0.02 s for rank 1"));
    CHECK_THAT(std::string(error.what()), ContainsSubstring("RUNJOB_GLOO_TIMEOUT_SECONDS"));
  }
}

TEST_CASE("an end from any rank ends the waits of all, later ones too", "[runtime][unit]") {
  const Patience patience = GENERATE(Patience{}, Patience{std::chrono::seconds(60), 0});
  const Layout layout = small_layout(3);
  const TestSegment segment(layout);
  Group zero(segment.data(), layout, options_of(0, patience)), two(segment.data(), layout, options_of(2));
  auto result = waiting(zero, 1);
  two.end();
  zero.end();  // the first one counts
  CHECK(result.get() == "rank 2 ended the exchange");
  CHECK(waiting(zero, 1).get() == "rank 2 ended the exchange");
  CHECK_THROWS_WITH(two.check(), "rank 2 ended the exchange");
}

TEST_CASE("a field that has reached its value counts although the group has ended", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Group zero(segment.data(), layout, options_of(0)), one(segment.data(), layout, options_of(1));
  one.publish(one.own().progress.filled, 1);
  one.end();
  CHECK(waiting(zero, 1).get().empty());
}
