#include "runtime/life/life_message.hpp"

#include "runtime/control/wire_format.hpp"

namespace runjob::runtime {
namespace {

constexpr std::size_t kLeastWaitBytes = 13;  // of a Wait without a text and without ranks

void write_wait(WireWriter& writer, const Wait& wait) {
  writer.text(wait.operation);
  writer.number(wait.process_set);
  writer.numbers(wait.ranks);
  writer.number(static_cast<std::uint8_t>(wait.is_join ? 1 : 0));
}

bool read_flag(WireReader& reader) {
  const auto flag = reader.number<std::uint8_t>();
  if (flag > 1) WireReader::refuse();
  return flag == 1;
}

Wait read_wait(WireReader& reader) {
  Wait wait;
  wait.operation = reader.text();
  wait.process_set = reader.number<std::int32_t>();
  wait.ranks = reader.numbers();
  wait.is_join = read_flag(reader);
  return wait;
}

}  // namespace

std::string encode(const LifeReport& report) {
  WireWriter writer;
  writer.choice(report.type);
  writer.status(report.status);
  writer.number(report.asked);
  writer.text(report.trace);
  writer.number(report.late);
  writer.number(static_cast<std::uint32_t>(report.waits.size()));
  for (const Wait& wait : report.waits) write_wait(writer, wait);
  writer.number(report.process_set);
  return writer.take();
}

std::string encode(const LifeDecision& decision) {
  WireWriter writer;
  writer.choice(decision.type);
  writer.status(decision.status);
  writer.number(decision.asked);
  writer.number(decision.clock);
  writer.number(decision.late);
  writer.number(static_cast<std::uint8_t>(decision.is_mutual ? 1 : 0));
  writer.number(decision.process_set);
  return writer.take();
}

LifeReport decode_life_report(std::string_view bytes) {
  WireReader reader(bytes);
  LifeReport report;
  report.type = reader.choice(LifeReport::Type::kGiveUp);
  report.status = reader.status();
  report.asked = reader.number<std::int64_t>();
  report.trace = reader.text();
  report.late = reader.number<std::int32_t>();
  report.waits.resize(reader.count(kLeastWaitBytes));
  for (Wait& wait : report.waits) wait = read_wait(reader);
  report.process_set = reader.number<std::int32_t>();
  reader.end();
  return report;
}

LifeDecision decode_life_decision(std::string_view bytes) {
  WireReader reader(bytes);
  LifeDecision decision;
  decision.type = reader.choice(LifeDecision::Type::kGiveUp);
  decision.status = reader.status();
  decision.asked = reader.number<std::int64_t>();
  decision.clock = reader.number<std::int64_t>();
  decision.late = reader.number<std::int32_t>();
  decision.is_mutual = read_flag(reader);
  decision.process_set = reader.number<std::int32_t>();
  reader.end();
  return decision;
}

}  // namespace runjob::runtime
