#include "cli/settings/read_elastic_settings.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

std::optional<ElasticSettings> read(const std::vector<std::pair<std::string, std::string>>& values, int ranks = 4) {
  Settings settings;
  for (const auto& [name, value] : values) settings[name] = {{value}, ""};
  return read_elastic_settings(SettingReader(settings, "/"), ranks);
}

}  // namespace

TEST_CASE("a job without --min-np has a fixed size", "[unit]") {
  CHECK_FALSE(read({}));
}

TEST_CASE("elastic settings have the defaults of the manual", "[unit]") {
  const auto settings = read({{"min-np", "2"}});
  REQUIRE(settings);
  CHECK(settings->min_ranks == 2);
  CHECK(settings->max_ranks == 4);
  CHECK(settings->timeout == 600s);
  CHECK(settings->rank_restarts == 3);
  CHECK_FALSE(settings->reset_limit);
  CHECK_FALSE(settings->cooldown);
}

TEST_CASE("elastic settings are read", "[unit]") {
  const auto settings = read({{"min-np", "4"},
                              {"max-np", "8"},
                              {"elastic-timeout", "2m"},
                              {"reset-limit", "0"},
                              {"rank-restarts", "7"},
                              {"blacklist-cooldown-range", "10 100"}});
  REQUIRE(settings);
  CHECK(settings->max_ranks == 8);
  CHECK(settings->timeout == 120s);
  CHECK(settings->reset_limit == 0);
  CHECK(settings->rank_restarts == 7);
  REQUIRE(settings->cooldown);
  CHECK(settings->cooldown->lower == 10s);
  CHECK(settings->cooldown->upper == 100s);
}

TEST_CASE("elastic settings that contradict each other are refused by name", "[unit]") {
  CHECK_THROWS_WITH(read({{"min-np", "5"}}), ContainsSubstring("5 is over the 4 ranks that the job starts with"));
  CHECK_THROWS_WITH(read({{"min-np", "2"}, {"max-np", "3"}}),
                    ContainsSubstring("3 is below the 4 ranks that the job starts with"));
  CHECK_THROWS_WITH(read({{"max-np", "8"}}), ContainsSubstring("needs --min-np"));
  CHECK_THROWS_WITH(read({{"rank-restarts", "1"}}), ContainsSubstring("needs --min-np"));
  CHECK_THROWS_AS(read({{"min-np", "0"}}), Error);
  for (const char* range : {"0 5", "5 3601", "9 5", "5", "a b", ""})
    CHECK_THROWS_AS(read({{"min-np", "1"}, {"blacklist-cooldown-range", range}}), Error);
}
