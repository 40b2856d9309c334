#include "runtime/negotiation/stall_inspector.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using std::chrono::seconds;

namespace {

const StallInspector::Clock::time_point kStart{};
const std::vector<WaitingOperation> kX{{7, "x", Kind::kAllreduce, {1, 2}}};
const std::vector<std::string> kLast{"x", "", "w"};

StallInspector inspector(seconds warning, seconds failure = {}) {
  return StallInspector({warning, failure}, {"a", "b", "b"});
}

}  // namespace

TEST_CASE("an operation that waits too long is spoken of once in each warning time", "[runtime][unit]") {
  StallInspector stalls = inspector(seconds(60));
  CHECK(stalls.inspect(kStart, kX, kLast).warnings.empty());
  CHECK(stalls.inspect(kStart + seconds(59), kX, kLast).warnings.empty());
  const auto report = stalls.inspect(kStart + seconds(61), kX, kLast);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0] ==
        "allreduce 'x' has waited 61 s for rank 1 on b (has submitted nothing), rank 2 on b (last submitted 'w')");
  CHECK(report.failure.ok());
  CHECK(stalls.inspect(kStart + seconds(62), kX, kLast).warnings.empty());
  CHECK(stalls.inspect(kStart + seconds(121), kX, kLast).warnings.size() == 1);
}

TEST_CASE("the next operation of the same name has not waited yet", "[runtime][unit]") {
  StallInspector stalls = inspector(seconds(60));
  stalls.inspect(kStart, kX, kLast);
  CHECK(stalls.inspect(kStart + seconds(61), {{8, "x", Kind::kAllreduce, {1}}}, kLast).warnings.empty());
  CHECK(stalls.inspect(kStart + seconds(62), kX, kLast).warnings.empty());
}

TEST_CASE("after the failure time the job is to end, with or without warnings", "[runtime][unit]") {
  StallInspector stalls = inspector(GENERATE(seconds(0), seconds(60)), seconds(90));
  stalls.inspect(kStart, kX, kLast);
  CHECK(stalls.inspect(kStart + seconds(89), kX, kLast).failure.ok());
  const auto report = stalls.inspect(kStart + seconds(90), kX, kLast);
  const auto& failure = report.failure;
  CHECK(report.late == 1);
  CHECK(failure.code() == Errc::kTimeout);
  CHECK_THAT(failure.message(), ContainsSubstring("has waited 90 s for rank 1 on b"));
  CHECK_THAT(failure.message(),
             ContainsSubstring("--stall-check-shutdown-time-seconds (RUNJOB_STALL_SHUTDOWN_TIME_SECONDS)"));
}

TEST_CASE("inspections are as frequent as the limits need", "[runtime][unit]") {
  CHECK_FALSE(inspector(seconds(0)).next(kStart));
  CHECK(inspector(seconds(60)).next(kStart) == kStart + seconds(15));
  CHECK(inspector(seconds(60), seconds(8)).next(kStart) == kStart + seconds(2));
  CHECK(inspector(seconds(0), seconds(8)).next(kStart) == kStart + seconds(2));
}

TEST_CASE("many missing ranks are counted", "[runtime][unit]") {
  StallInspector stalls({seconds(1), seconds(0)}, std::vector<std::string>(20, "a"));
  WaitingOperation all{1, "x", Kind::kBarrier, {}};
  for (int rank = 1; rank < 20; ++rank) all.missing.push_back(rank);
  const std::vector<std::string> last(20);
  stalls.inspect(kStart, {all}, last);
  const auto report = stalls.inspect(kStart + seconds(2), {all}, last);
  CHECK_THAT(report.warnings.at(0), ContainsSubstring("rank 8 on a (has submitted nothing) and 11 more"));
}
