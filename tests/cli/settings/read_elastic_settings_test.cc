#include "cli/settings/read_elastic_settings.hpp"

#include "base/error.hpp"
#include "hostfile/parse_hosts.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

/// `hosts`: those of the job. The job starts with `ranks` ranks, if the user gives a number.
std::optional<ElasticSettings> read(const std::vector<std::pair<std::string, std::string>>& values,
                                    std::optional<int> ranks = 4, const std::string& hosts = "s1:4",
                                    bool as_horovod = false) {
  Settings settings;
  for (const auto& [name, value] : values) settings[name] = {{value}, ""};
  const SettingReader reader(settings, "/");
  const auto size = read_elastic_size(reader, ranks, as_horovod);
  if (!size) return std::nullopt;
  const std::vector<Host> list = parse_host_list(hosts);
  return read_elastic_settings(reader, *size, list, allocate(list, size->first_ranks(count_slots(list))));
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

TEST_CASE("a variable for elastic jobs changes nothing in another job", "[unit]") {
  const Settings settings{{"elastic-timeout", {{"30"}, "environment HOROVOD_ELASTIC_TIMEOUT"}},
                          {"max-np", {{"8"}, "environment RUNJOB_MAX_NP"}}};
  CHECK_FALSE(read_elastic_size(SettingReader(settings, "/"), 4, false));
}

TEST_CASE("elastic settings that contradict each other are refused by name", "[unit]") {
  CHECK_THROWS_WITH(read({{"min-np", "5"}}), ContainsSubstring("5 is over the 4 ranks that the job starts with"));
  CHECK_THROWS_WITH(read({{"min-np", "2"}, {"max-np", "3"}}),
                    ContainsSubstring("3 is below the 4 ranks that the job starts with"));
  CHECK_THROWS_WITH(read({{"max-np", "8"}}), ContainsSubstring("needs --min-np"));
  CHECK_THROWS_WITH(read({{"rank-restarts", "1"}}), ContainsSubstring("needs --min-np"));
  CHECK_THROWS_WITH(read({{"spares", "1"}}), ContainsSubstring("needs --min-np"));
  CHECK_THROWS_WITH(read({{"min-np", "1"}, {"slots-per-host", "2"}}),
                    ContainsSubstring("needs --host-discovery-script"));
  CHECK_THROWS_WITH(read({{"min-np", "3"}, {"max-np", "2"}}, std::nullopt),
                    ContainsSubstring("2 is below the 3 of --min-np"));
  CHECK_THROWS_WITH(read({{"min-np", "1"}, {"spares", "2"}}),
                    ContainsSubstring("4 ranks and 2 spares need 6 slots, and the hosts have 4"));
  CHECK_THROWS_WITH(read({{"host-discovery-script", " "}}), ContainsSubstring("the command is empty"));
  CHECK_THROWS_AS(read({{"min-np", "0"}}), Error);
  for (const char* range : {"0 5", "5 3601", "9 5", "5", "a b", ""})
    CHECK_THROWS_AS(read({{"min-np", "1"}, {"blacklist-cooldown-range", range}}), Error);
}

TEST_CASE("hosts without a rank at the start are kept for growth", "[unit]") {
  const auto settings = read({{"min-np", "1"}, {"max-np", "6"}}, 2, "s1:2,s2:4");
  REQUIRE(settings->more_hosts.size() == 1);
  CHECK(settings->more_hosts[0].name == "s2");
  CHECK(settings->may_get_hosts());
  CHECK_FALSE(read({{"min-np", "1"}})->may_get_hosts());
}

TEST_CASE("without a number the job starts on all slots but those of the spares, up to its most ranks", "[unit]") {
  ElasticSize size;
  CHECK(size.first_ranks(6) == 6);
  size.spares = 2;
  CHECK(size.first_ranks(6) == 4);
  size.max_ranks = 3;
  CHECK(size.first_ranks(6) == 3);
  size.ranks = 2;
  CHECK(size.first_ranks(6) == 2);
}

TEST_CASE("a discovery script makes the job elastic, with as many ranks at least as it starts with", "[unit]") {
  const auto settings = read({{"host-discovery-script", "./hosts.sh"}, {"slots-per-host", "3"}}, 2);
  REQUIRE(settings);
  CHECK(settings->min_ranks == 2);
  CHECK(settings->discovery_script == "./hosts.sh");
  CHECK(settings->slots_per_host == 3);
}

TEST_CASE("under the name horovodrun the job takes all slots, and starts no rank again", "[unit]") {
  const auto settings = read({{"min-np", "2"}}, 2, "s1:2,s2:2", /*as_horovod=*/true);
  CHECK(settings->max_ranks == kMaxRanks);
  CHECK(settings->rank_restarts == 0);
  CHECK(settings->as_horovod);
  CHECK(settings->more_hosts.empty());  // four ranks at the start
  CHECK(read({{"min-np", "2"}, {"max-np", "3"}}, 2, "s1:2,s2:2", true)->more_hosts.empty());
}

TEST_CASE("the folder of commits becomes a variable of the ranks", "[unit]") {
  using Variables = std::map<std::string, std::string>;
  const auto read_commits = [](const Settings& settings) {
    return read_commit_variables(SettingReader(settings, "/work"));
  };
  const auto given = [](const std::string& text) { return Setting{{text}, "command line"}; };
  CHECK(read_commits({}).empty());
  CHECK(read_commits({{"commit-dir", given("c")}}) == Variables{{"COMMIT_DIR", "/work/c"}});
  CHECK(read_commits({{"commit-dir", given("/c")}, {"commit-interval", given("2m")}}) ==
        Variables{{"COMMIT_DIR", "/c"}, {"COMMIT_INTERVAL", "120"}});
  CHECK(read_commits({{"commit-dir", given("/c")}, {"commit-interval", given("0")}}).at("COMMIT_INTERVAL") == "0");
  CHECK_THROWS_WITH(read_commits({{"commit-interval", given("5")}}), ContainsSubstring("needs --commit-dir"));
  CHECK_THROWS_WITH(read_commits({{"commit-dir", given("/c")}, {"commit-interval", given("soon")}}),
                    ContainsSubstring("'soon'"));
  CHECK_THROWS_WITH(read_commits({{"commit-dir", given("/dev/null")}}),
                    ContainsSubstring("/dev/null is not a directory; name a directory of your own"));
  CHECK(read_commits({{"commit-interval", {{"5"}, "environment RUNJOB_COMMIT_INTERVAL"}}}).empty());
  CHECK_THROWS_WITH(read({{"commit-dir", "/c"}}), ContainsSubstring("needs --min-np"));
}
