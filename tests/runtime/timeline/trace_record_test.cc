#include "runtime/timeline/trace_record.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using Type = TraceRecord::Type;

namespace {

nlohmann::json parse(const TraceRecord& record, std::int64_t offset_ns = 0) {
  return nlohmann::json::parse("[" + format(record, offset_ns) + "]");
}

}  // namespace

TEST_CASE("names are escaped as JSON wants it", "[runtime][unit]") {
  CHECK(json_escape("plain.name/0") == "plain.name/0");
  CHECK(json_escape("a\"b\\c\n") == "a\\\"b\\\\c\\n");
  CHECK(json_escape(std::string("\0", 1)) == "\\u0000");
  CHECK(nlohmann::json::parse("\"" + json_escape("bad \xff utf-8") + "\"").is_string());
}

TEST_CASE("a tensor's records have Horovod's fields, in microseconds", "[runtime][unit]") {
  CHECK(format({.type = Type::kBegin, .pid = 7, .ns = 5'999, .label = "QUEUE"}, 1'000) ==
        R"({"name": "QUEUE", "ph": "B", "ts": 6, "pid": 7})");
  CHECK(format({.type = Type::kEnd, .pid = 7, .ns = 9'000}, 0) == R"({"ph": "E", "ts": 9, "pid": 7})");
  CHECK(format({.type = Type::kTick, .pid = 7, .id = 3, .ns = 9'000}, 0) ==
        R"({"name": "3", "ph": "X", "ts": 9, "pid": 7, "dur": 0})");
  const auto first = parse({.type = Type::kTensor, .pid = 7, .text = "a\"b"});
  CHECK(first.at(0).at("args").at("name") == "a\"b");
  CHECK(first.at(1).at("args").at("sort_index") == 7);
}

TEST_CASE("a result tells dtype, shape and bytes, a beginning its algorithm", "[runtime][unit]") {
  const TraceRecord result{.type = Type::kResult, .pid = 1, .dtype = DType::kFloat32, .shape = {17, 17}};
  const auto arguments = parse(result).at(0).at("args");
  CHECK(arguments.at("dtype") == "float32");
  CHECK(arguments.at("shape") == "[17, 17]");
  CHECK(arguments.at("bytes") == 17 * 17 * 4);
  CHECK(parse({.type = Type::kBegin, .algorithm = "ring"}).at(0).at("args").at("algorithm") == "ring");
}

TEST_CASE("a track's events are nested asynchronous ones of their rank, to the nanosecond", "[runtime][unit]") {
  const TraceRecord begin{.type = Type::kTrackBegin,
                          .pid = 9,
                          .id = 255,
                          .ns = 1'500,
                          .label = "ALLREDUCE",
                          .algorithm = "ring",
                          .text = "x"};
  const auto event = parse(begin, -500).at(0);
  CHECK(event.at("ph") == "b");
  CHECK(event.at("id2").at("local") == "0xff");
  CHECK(event.at("pid") == 9);
  CHECK(event.at("ts") == 1.0);
  CHECK(event.at("args") == nlohmann::json{{"tensor", "x"}, {"algorithm", "ring"}});
  TraceRecord end = begin;
  end.type = Type::kTrackEnd;
  end.ns = 2'501;
  CHECK(parse(end).at(0).at("ph") == "e");
  CHECK(parse(end).at(0).at("ts") == 2.501);
  const auto rank = parse({.type = Type::kRank, .pid = 9, .id = -2, .text = "rank 3 on s4"});
  CHECK(rank.at(0).at("args").at("name") == "rank 3 on s4");
  CHECK(rank.at(1).at("args").at("sort_index") == -2);
}

TEST_CASE("only records of another rank come into the trace", "[runtime][unit]") {
  CHECK(is_trace_text(R"({"name": "x"})"));
  CHECK(is_trace_text("{\"a\": 1},\n{\"b\": [{}]}"));
  for (const char* text : {"", " ", "{},", ",{}", "{}]}", "{}], \"x\": [{}", "5", "\"x\"", "[]", "null",
                           "{\"a\": \"\x1b[2J\"}", "{\"a\": \"\xff\"}"}) {
    INFO(text);
    CHECK_FALSE(is_trace_text(text));
  }
  CHECK_FALSE(is_trace_text(std::string(200'000, '[')));
}
