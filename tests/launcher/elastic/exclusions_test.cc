#include "launcher/elastic/exclusions.hpp"

#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

const Exclusions::TimePoint kStart{};

}  // namespace

TEST_CASE("a host is excluded when more ranks failed in a row than may be restarted", "[unit]") {
  Exclusions exclusions(std::nullopt, 2);
  CHECK_FALSE(exclusions.rank_failed(0, 5, kStart));
  CHECK_FALSE(exclusions.rank_failed(0, 5, kStart));
  CHECK_FALSE(exclusions.rank_failed(1, 5, kStart));
  CHECK_FALSE(exclusions.is_excluded(0, kStart));
  CHECK(exclusions.rank_failed(0, 5, kStart));
  CHECK(exclusions.is_excluded(0, kStart + 1000h));
  CHECK(exclusions.duration_text(0, kStart) == "for ever");
  CHECK(exclusions.next_return(kStart) == Exclusions::TimePoint::max());
  CHECK_FALSE(exclusions.is_excluded(1, kStart));
}

TEST_CASE("failures before progress do not count", "[unit]") {
  Exclusions exclusions(std::nullopt, 1);
  CHECK_FALSE(exclusions.rank_failed(0, 5, kStart));
  exclusions.forgive(0);
  CHECK_FALSE(exclusions.rank_failed(0, 5, kStart));
  CHECK(exclusions.rank_failed(0, 5, kStart));
}

TEST_CASE("only a process that was started after the last failure shows progress by going on", "[unit]") {
  Exclusions exclusions(std::nullopt, 1);
  CHECK_FALSE(exclusions.rank_failed(0, 5, kStart));
  SECTION("it lived before") {
    exclusions.forgive(0, 4);
    CHECK(exclusions.rank_failed(0, 6, kStart));
  }
  SECTION("it was started after it") {
    exclusions.forgive(0, 5);
    CHECK_FALSE(exclusions.rank_failed(0, 6, kStart));
  }
}

TEST_CASE("a failure that would exclude a host waits until it is known whether there was progress", "[unit]") {
  Exclusions exclusions(std::nullopt, 1);
  CHECK_FALSE(exclusions.postpone({0, 7, 5}).value().is_decisive);
  CHECK_FALSE(exclusions.is_excluded(0, kStart));
  CHECK(exclusions.postpone({0, 8, 6}).value().is_decisive);
  CHECK(exclusions.is_excluded(0, kStart));
  CHECK_FALSE(exclusions.postpone({1, 0, 6}).value().is_decisive);
  const auto postponed = exclusions.postponed();
  REQUIRE(postponed.size() == 3);
  CHECK((postponed[1].host == 0 && postponed[1].member_since == 8 && postponed[1].first_successor == 6));
  CHECK(exclusions.postponed().empty());
  CHECK_FALSE(exclusions.is_excluded(0, kStart));
  CHECK_FALSE(exclusions.rank_failed(0, 5, kStart));
  SECTION("with progress the second one is the first") {
    exclusions.forgive(0);
    CHECK_FALSE(exclusions.rank_failed(0, 6, kStart));
  }
  SECTION("without it the host is excluded") {
    CHECK(exclusions.rank_failed(0, 6, kStart));
  }
}

TEST_CASE("without restarts there is no doubt: the host is excluded at once", "[unit]") {
  Exclusions exclusions(std::nullopt, 0);
  CHECK_FALSE(exclusions.postpone({0, 7, 5}));
  CHECK(exclusions.rank_failed(0, 5, kStart));
}

TEST_CASE("a cooldown begins with its lower end and is doubled up to the upper one", "[unit]") {
  Exclusions exclusions(Cooldown{10s, 25s}, 3);
  auto now = kStart;
  for (const auto expected : {10s, 20s, 25s, 25s}) {
    exclusions.exclude(0, now);
    CHECK(exclusions.duration_text(0, now) == "for " + std::to_string(expected.count()) + " s");
    CHECK(exclusions.next_return(now) == now + expected);
    CHECK(exclusions.is_excluded(0, now + expected - 1ms));
    now += expected;
    CHECK_FALSE(exclusions.is_excluded(0, now));
  }
}
