#include "cli/settings/setting_reader.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

const Settings kSettings = {
    {"verbose", {{"true"}, "--verbose"}},     {"wdir", {{"a/../b"}, "--wdir"}},
    {"status-file", {{""}, "file job.toml"}}, {"start-timeout", {{"1m"}, "environment RUNJOB_START_TIMEOUT"}},
    {"timeout", {{"0"}, "--timeout"}},        {"export", {{"A=1", "B=2"}, "-x"}}};

}  // namespace

TEST_CASE("a setting is read as the type of its option", "[unit]") {
  const SettingReader reader(kSettings, "/home");
  CHECK(reader.find("export")->text == "B=2");
  CHECK(reader.flag("verbose"));
  CHECK_FALSE(reader.flag("check-build"));
  CHECK(reader.path("wdir")->text == "/home/b");
  CHECK(reader.absolute({"/a/./b", "--wdir"}) == "/a/b");
  REQUIRE(reader.all("export").size() == 2);
  CHECK(reader.all("export").front().text == "A=1");
  CHECK(reader.all("export").back().place == "-x");
  CHECK(reader.all("env-file").empty());
  CHECK(reader.duration("start-timeout") == 60s);
  CHECK(reader.duration("timeout") == 0s);
  CHECK_FALSE(reader.duration("grace-period"));
}

TEST_CASE("a value that cannot be read names who gave it", "[unit]") {
  const SettingReader reader(kSettings, "/home");
  CHECK_THROWS_WITH(reader.path("status-file"), "file job.toml, status-file: the path is empty; give one");
  CHECK_THROWS_WITH(reader.positive_duration("timeout", "run"),
                    "--timeout: '0' leaves no time to run; give a longer one");
  CHECK_THROWS_AS(reader.flag("wdir"), Error);
}
