#include "runtime/timeline/clock_alignment.hpp"

#include "tests/catch.hpp"

using runjob::runtime::ClockAlignment;

TEST_CASE("the fastest answer tells how far the other clock is off", "[runtime][unit]") {
  ClockAlignment alignment;
  CHECK_FALSE(alignment.offset());
  alignment.add(/*asked=*/1'000, /*theirs=*/501'900, /*answered=*/2'000);  // late on the way there: 400 too much
  CHECK(alignment.offset() == 500'400);
  alignment.add(3'000, 503'010, 3'020);
  CHECK(alignment.offset() == 500'000);
  alignment.add(4'000, 504'900, 5'000);
  CHECK(alignment.offset() == 500'000);
}

TEST_CASE("old answers are forgotten, since clocks drift", "[runtime][unit]") {
  ClockAlignment alignment;
  alignment.add(0, 100, 2);
  for (std::size_t i = 0; i < ClockAlignment::kRemembered; ++i) alignment.add(0, 1'005, 10);
  CHECK(alignment.offset() == 1'000);
  CHECK(alignment.answers() == ClockAlignment::kRemembered);
}
