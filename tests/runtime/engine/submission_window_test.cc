#include "runtime/engine/submission_window.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

using Clock = SubmissionWindow::Clock;
constexpr std::chrono::microseconds kCycle{1000};
constexpr Clock::time_point kStart{std::chrono::hours(1)};

Signature floats(std::int64_t count) {
  return {.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .shape = {count}};
}

}  // namespace

TEST_CASE("a window is open for the cycle time from the first submission on", "[runtime][unit]") {
  SubmissionWindow window(kCycle, 100);
  CHECK(window.is_used());
  CHECK_FALSE(window.closes(kStart));
  window.submitted(floats(1), kStart);
  window.submitted(floats(1), kStart + kCycle / 2);
  CHECK(window.closes(kStart + kCycle / 2) == kStart + kCycle);
  CHECK_FALSE(window.closes(kStart + kCycle));
  window.clear();
  window.submitted(floats(1), kStart + kCycle);
  CHECK(window.closes(kStart + kCycle) == kStart + 2 * kCycle);
}

TEST_CASE("a full buffer, a barrier, a join and somebody who waits close it", "[runtime][unit]") {
  SubmissionWindow window(kCycle, 100);
  window.submitted(floats(24), kStart);
  CHECK(window.closes(kStart));
  SECTION("a full buffer") {
    window.submitted(floats(1), kStart);
  }
  SECTION("a full buffer, of a group") {
    Signature group{.kind = Kind::kAllreduce, .wire = DType::kFloat16};
    group.group = {{DType::kUint8, {2}}, {DType::kFloat64, {1}}};
    window.submitted(group, kStart);
  }
  SECTION("a barrier") {
    window.submitted({.kind = Kind::kBarrier}, kStart);
  }
  SECTION("a join") {
    window.submitted({.kind = Kind::kJoin}, kStart);
  }
  SECTION("somebody who waits") {
    window.begin_waiting();
  }
  CHECK_FALSE(window.closes(kStart));
}

TEST_CASE("it is open again when nobody waits any more", "[runtime][unit]") {
  SubmissionWindow window(kCycle, 100);
  window.begin_waiting();
  window.begin_waiting();
  window.end_waiting();
  window.submitted(floats(1), kStart);
  CHECK_FALSE(window.closes(kStart));
  window.end_waiting();
  CHECK(window.closes(kStart));
}

TEST_CASE("without a cycle time nothing waits", "[runtime][unit]") {
  SubmissionWindow window(std::chrono::microseconds(0), 100);
  CHECK_FALSE(window.is_used());
  window.submitted(floats(1), kStart);
  CHECK_FALSE(window.closes(kStart));
}
