#include "runtime/life/life_message.hpp"

#include "runtime/control/wire_format.hpp"

namespace runjob::runtime {

std::string encode(const LifeReport& report) {
  WireWriter writer;
  writer.choice(report.type);
  writer.status(report.status);
  writer.number(report.asked);
  writer.text(report.trace);
  return writer.take();
}

std::string encode(const LifeDecision& decision) {
  WireWriter writer;
  writer.choice(decision.type);
  writer.status(decision.status);
  writer.number(decision.asked);
  writer.number(decision.clock);
  return writer.take();
}

LifeReport decode_life_report(std::string_view bytes) {
  WireReader reader(bytes);
  LifeReport report;
  report.type = reader.choice(LifeReport::Type::kTrace);
  report.status = reader.status();
  report.asked = reader.number<std::int64_t>();
  report.trace = reader.text();
  reader.end();
  return report;
}

LifeDecision decode_life_decision(std::string_view bytes) {
  WireReader reader(bytes);
  LifeDecision decision;
  decision.type = reader.choice(LifeDecision::Type::kClock);
  decision.status = reader.status();
  decision.asked = reader.number<std::int64_t>();
  decision.clock = reader.number<std::int64_t>();
  reader.end();
  return decision;
}

}  // namespace runjob::runtime
