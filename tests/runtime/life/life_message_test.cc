#include "runtime/life/life_message.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

namespace {

const LifeReport kReport{.type = LifeReport::Type::kTrace,
                         .status = Status(Errc::kTimeout, "too slow"),
                         .asked = -7,
                         .trace = std::string("a\0b", 3),
                         .late = 3,
                         .waits = {{"allreduce 'x'", 2, {0, 3}, false}, {"join", 0, {}, true}},
                         .process_set = 4};

}  // namespace

TEST_CASE("a report comes back as it was", "[runtime][unit]") {
  const LifeReport back = decode_life_report(encode(kReport));
  CHECK(back.type == kReport.type);
  CHECK(back.status.code() == Errc::kTimeout);
  CHECK(back.status.message() == "too slow");
  CHECK(back.asked == -7);
  CHECK(back.trace == kReport.trace);
  CHECK(back.late == 3);
  CHECK(back.waits == kReport.waits);
  CHECK(back.process_set == 4);
}

TEST_CASE("a decision on the life of the job comes back as it was", "[runtime][unit]") {
  const LifeDecision decision{.type = LifeDecision::Type::kClock,
                              .status = Status(Errc::kPeerLost, "gone"),
                              .asked = 3,
                              .clock = -1,
                              .late = 5,
                              .is_mutual = true,
                              .process_set = 6};
  const LifeDecision back = decode_life_decision(encode(decision));
  CHECK(back.type == decision.type);
  CHECK(back.status.code() == Errc::kPeerLost);
  CHECK(back.status.message() == "gone");
  CHECK(back.asked == 3);
  CHECK(back.clock == -1);
  CHECK(back.late == 5);
  CHECK(back.is_mutual);
  CHECK(back.process_set == 6);
}

TEST_CASE("truncated, longer and impossible messages about the life of the job are refused", "[runtime][unit]") {
  const std::string report = encode(kReport), decision = encode(LifeDecision());
  for (std::size_t length = 0; length < report.size(); ++length)
    REQUIRE_THROWS_WITH(decode_life_report(report.substr(0, length)), ContainsSubstring("malformed"));
  for (std::size_t length = 0; length < decision.size(); ++length)
    REQUIRE_THROWS_AS(decode_life_decision(decision.substr(0, length)), Error);
  CHECK_THROWS_AS(decode_life_report(report + "x"), Error);
  CHECK_THROWS_AS(decode_life_decision(decision + "x"), Error);
  CHECK_THROWS_AS(decode_life_decision("\x7f" + decision.substr(1)), Error);
}
