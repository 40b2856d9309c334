#include "cli/options/settings.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("the stronger source wins, option by option", "[unit]") {
  const Settings strong = {{"num-proc", {{"2"}, "-np"}}};
  const Settings weak = {{"num-proc", {{"4"}, "file f"}}, {"wdir", {{"/"}, "file f"}}};
  CHECK(merge_settings(strong, weak) == Settings{{"num-proc", {{"2"}, "-np"}}, {"wdir", {{"/"}, "file f"}}});
}

TEST_CASE("hosts and hostfile hide each other across sources and exclude each other within one", "[unit]") {
  const Settings file = {{"hostfile", {{"f"}, "--hostfile"}}};
  const Settings hosts = {{"hosts", {{"a"}, "environment RUNJOB_HOSTS"}}};
  CHECK(merge_settings(file, hosts) == file);
  CHECK(merge_settings(hosts, file) == hosts);
  const Settings both = {{"hostfile", {{"f"}, "--hostfile"}}, {"hosts", {{"a"}, "-H"}}};
  CHECK_THROWS_WITH(merge_settings(both, {}), "-H and --hostfile both name hosts; give one of them");
  const Settings in_file = {{"hostfile", {{"f"}, "file j"}}, {"hosts", {{"a"}, "file j"}}};
  CHECK_THROWS_WITH(merge_settings({}, in_file),
                    "file j, hosts and file j, hostfile both name hosts; give one of them");
}

TEST_CASE("an option that adds up keeps every source's values, the strongest last", "[unit]") {
  const Settings merged = merge_settings({{"export", {{"A=2"}, "-x"}}}, {{"export", {{"A=1", "B"}, "file f"}}});
  CHECK(merged.at("export") == Setting{{"A=1", "B", "A=2"}, "file f, -x"});
  const Setting strong{{"eth0", "eth1"}, "--network-interface"};
  CHECK(merge_settings({{"network-interfaces", strong}}, {{"network-interfaces", {{"ib0"}, "file f"}}}) ==
        Settings{{"network-interfaces", strong}});
}
