#include "runtime/timeline/trace_shipment.hpp"

#include <nlohmann/json.hpp>

#include "runtime/timeline/trace_clock.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using Type = TraceRecord::Type;

namespace {

constexpr std::int64_t kAhead = 1'000'000'000'000;  // of the other clock

TraceRecord end_now() {
  return {.type = Type::kTrackEnd, .pid = 1, .ns = trace_clock(), .label = "ALLREDUCE"};
}

/// Answers every question at once. What else there was to send.
std::vector<std::string> answer_all(TraceShipment& shipment) {
  std::vector<std::string> records;
  for (auto messages = shipment.take(); !messages.empty(); messages = shipment.take()) {
    for (const TraceShipment::Message& message : messages) {
      if (message.asks_clock) {
        shipment.answer(message.asked, trace_clock() + kAhead);
      } else {
        records.push_back(message.records);
      }
    }
  }
  return records;
}

}  // namespace

TEST_CASE("records wait for the clock, and have its time", "[runtime][unit]") {
  int woken = 0;
  TraceShipment shipment([&woken] { ++woken; });
  CHECK(woken == 1);
  const std::int64_t before = trace_clock();
  CHECK(shipment.write({end_now(), end_now()}));
  const auto records = answer_all(shipment);
  REQUIRE(records.size() == 1);
  const auto parsed = nlohmann::json::parse("[" + records[0] + "]");
  REQUIRE(parsed.size() == 2);
  const double us = parsed.at(0).at("ts").get<double>() - static_cast<double>(before + kAhead) / 1e3;
  CHECK(us >= -1'000);
  CHECK(us < 1e7);
  CHECK(shipment.write({end_now()}));
  CHECK(answer_all(shipment).size() == 1);
}

TEST_CASE("the end is said once, after everything else", "[runtime][unit]") {
  TraceShipment shipment([] {});
  shipment.write({end_now()});
  shipment.finish();
  const auto records = answer_all(shipment);
  REQUIRE(records.size() == 2);
  CHECK_FALSE(records[0].empty());
  CHECK(records[1].empty());
}

TEST_CASE("while rank 0 records nothing, nothing is kept", "[runtime][unit]") {
  TraceShipment shipment([] {});
  shipment.write({end_now()});
  for (const auto& message : shipment.take()) shipment.answer(message.asked, TraceShipment::kNotRecording);
  CHECK(shipment.take().empty());
  shipment.write({end_now()});  // now it may record
  CHECK(answer_all(shipment).size() == 1);
}

TEST_CASE("records leave with the clock that is known when there is no time for more questions", "[runtime][unit]") {
  TraceShipment shipment([] {});
  shipment.write({end_now()});
  shipment.hurry();
  CHECK(shipment.awaits_first_answer());
  const auto questions = shipment.take();
  REQUIRE(questions.size() == 1);
  shipment.answer(questions[0].asked, trace_clock() + kAhead);
  CHECK_FALSE(shipment.awaits_first_answer());
  shipment.hurry();
  const auto messages = shipment.take();
  CHECK(std::count_if(messages.begin(), messages.end(), [](const auto& each) { return !each.asks_clock; }) == 1);
  shipment.hurry();
  CHECK(shipment.take().empty());
}
