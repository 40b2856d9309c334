#include "runtime/timeline/trace_file.hpp"

#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/temporary_trace.hpp"

using namespace runjob::runtime;

TEST_CASE("a trace is a complete JSON array after every flush", "[runtime][unit]") {
  const TemporaryTrace file;
  TraceFile trace(file.path, "RUNJOB_TIMELINE");
  CHECK(parse_trace(file.path).empty());
  for (int i = 0; i < 300; ++i) {
    trace.append(R"({"i": )" + std::to_string(i) + "}");
    trace.flush();
    const auto document = parse_trace(file.path);
    REQUIRE(document.size() == static_cast<std::size_t>(i + 1));
    REQUIRE(document.back().at("i") == i);
  }
}

TEST_CASE("a full page is written without a flush, and it is complete", "[runtime][unit]") {
  const TemporaryTrace file;
  TraceFile trace(file.path, "RUNJOB_TIMELINE");
  for (int i = 0; i < 1000; ++i) {
    trace.append(R"({"name": "some text to fill the page"})");
    REQUIRE(parse_trace(file.path).is_array());
  }
  CHECK(parse_trace(file.path).size() > 900);
}

TEST_CASE("an old file is replaced", "[runtime][unit]") {
  const TemporaryTrace file;
  std::ofstream(file.path) << std::string(100000, 'x');
  const TraceFile trace(file.path, "RUNJOB_TIMELINE");
  CHECK(parse_trace(file.path).empty());
}

TEST_CASE("a file that cannot be created is refused by name", "[runtime][unit]") {
  try {
    const TraceFile trace("/nonexistent/t.json", "RUNJOB_TIMELINE");
    FAIL("created");
  } catch (const runjob::Error& error) {
    CHECK(error.code() == runjob::Errc::kUsage);
    CHECK(std::string(error.what()) ==
          "RUNJOB_TIMELINE: cannot create '/nonexistent/t.json': No such file or directory");
  }
}

TEST_CASE("a full disk is an error that names the file", "[runtime][unit]") {
  TraceFile trace("/dev/null", "RUNJOB_TIMELINE");
  trace.append("{}");
  CHECK_NOTHROW(trace.flush());
  CHECK_THROWS_WITH(TraceFile("/dev/full", "RUNJOB_TIMELINE"), ContainsSubstring("writing '/dev/full': No space left"));
}
