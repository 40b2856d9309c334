#include "runtime/timeline/trace_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

/// A file name of its own, removed at the end.
struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() / "runjob-trace-XXXXXX").string();
  TemporaryFile() { ::close(::mkstemp(path.data())); }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

nlohmann::json parse(const std::string& path) {
  std::ifstream stream(path);
  return nlohmann::json::parse(stream);
}

}  // namespace

TEST_CASE("a trace is a complete JSON array after every flush", "[runtime][unit]") {
  const TemporaryFile file;
  TraceFile trace(file.path, "RUNJOB_TIMELINE");
  CHECK(parse(file.path).empty());
  for (int i = 0; i < 300; ++i) {
    trace.append(R"({"i": )" + std::to_string(i) + "}");
    trace.flush();
    const auto document = parse(file.path);
    REQUIRE(document.size() == static_cast<std::size_t>(i + 1));
    REQUIRE(document.back().at("i") == i);
  }
}

TEST_CASE("a full page is written without a flush, and it is complete", "[runtime][unit]") {
  const TemporaryFile file;
  TraceFile trace(file.path, "RUNJOB_TIMELINE");
  for (int i = 0; i < 1000; ++i) {
    trace.append(R"({"name": "some text to fill the page"})");
    REQUIRE(parse(file.path).is_array());
  }
  CHECK(parse(file.path).size() > 900);
}

TEST_CASE("an old file is replaced", "[runtime][unit]") {
  const TemporaryFile file;
  std::ofstream(file.path) << std::string(100000, 'x');
  const TraceFile trace(file.path, "RUNJOB_TIMELINE");
  CHECK(parse(file.path).empty());
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
