#include "runtime/timeline/file_sink.hpp"

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/runtime/temporary_trace.hpp"

using namespace runjob::runtime;
using Type = TraceRecord::Type;

TEST_CASE("times in the file begin with the trace", "[runtime][unit]") {
  const TemporaryTrace file;
  FileSink sink(file.path, "RUNJOB_TIMELINE", /*start_ns=*/5'000'000, 1 << 20);
  CHECK(parse_trace(file.path).at(0).at("args").contains("start_time_since_epoch_in_micros"));
  CHECK(sink.write({{.type = Type::kEnd, .pid = 1, .ns = 5'003'000}}));
  CHECK(parse_trace(file.path).back().at("ts") == 3);
}

TEST_CASE("a file as long as it may be ends the trace, which says so and stays valid", "[runtime][unit]") {
  constexpr std::size_t kMost = 10'000;
  const TemporaryTrace file;
  FileSink sink(file.path, "RUNJOB_TIMELINE", 0, kMost);
  const std::vector<TraceRecord> batch(10, {.type = Type::kEnd, .pid = 1, .ns = 1'000});
  int batches = 0;
  while (sink.write(batch)) REQUIRE(++batches < 1'000);
  const auto trace = parse_trace(file.path);
  CHECK(trace.back().at("name") == "TIMELINE_FULL");
  CHECK_THAT(trace.back().at("args").at("why").get<std::string>(), ContainsSubstring(file.path));
  CHECK(std::filesystem::file_size(file.path) < kMost + 1'000);
}
