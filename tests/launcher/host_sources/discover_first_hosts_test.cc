#include "launcher/host_sources/discover_first_hosts.hpp"

#include "base/environment.hpp"
#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

std::vector<Host> discover(const std::string& script, int slots, std::vector<std::string>& warnings,
                           std::chrono::milliseconds patience = 60s) {
  const FirstHosts wanted{script, "--host-discovery-script", 2, slots, patience};
  return discover_first_hosts(wanted, current_environment(),
                              [&](const std::string& line) { warnings.push_back(line); });
}

}  // namespace

TEST_CASE("the first hosts are those of the first list with enough slots", "[multiproc]") {
  std::vector<std::string> warnings;
  const std::vector<Host> hosts = discover("echo s1; echo s2:3; echo s1", 5, warnings);
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0].slots == 2);
  CHECK(hosts[1].slots == 3);
  CHECK(warnings.empty());
  const std::string file = "/tmp/runjob_discover_" + std::to_string(::getpid());
  CHECK(discover("cat " + file + " 2>/dev/null || { echo s1:1; echo s1:4 > " + file + "; }", 4, warnings).at(0).slots ==
        4);
  ::unlink(file.c_str());
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("lists 1 of the 4 slots that the job needs; waiting up to 60 s for more"));
}

TEST_CASE("a script that fails at first, or prints a bad line, is the user's mistake", "[multiproc]") {
  std::vector<std::string> warnings;
  CHECK_THROWS_WITH(discover("echo broken >&2; exit 7", 1, warnings),
                    "--host-discovery-script: the first run of 'echo broken >&2; exit 7' exited with status 7: broken");
  CHECK_THROWS_WITH(discover("echo s1:many", 1, warnings), ContainsSubstring("line 1, column 4: expected a number"));
  try {
    discover("true", 1, warnings, 10ms);
    FAIL("it lists no slots");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kTimeout);
    CHECK_THAT(error.what(), ContainsSubstring("0 of the 1 slots"));
  }
}
