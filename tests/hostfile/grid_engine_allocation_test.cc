#include "hostfile/grid_engine_allocation.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/hostfile/host_texts.hpp"

using namespace runjob;

namespace {

std::string hosts_of(const std::string& text) {
  return text_of(parse_grid_engine_hosts(text, "PE_HOSTFILE f"));
}

}  // namespace

TEST_CASE("Grid Engine's file has a host and its slots on each line", "[unit]") {
  CHECK(hosts_of("s1 2 all.q@s1 UNDEFINED\ns2 2 all.q@s2 UNDEFINED\n") == "s1:2 s2:2");  // of version 8.1.9
  CHECK(hosts_of("s1 2 all.q@s1 0,0\ns2 1 a.q@s2 <NULL>\ns1 1 b.q@s1 0,1\n") == "s1:3 s2:1");
  CHECK(hosts_of("s1 2") == "s1:2");
}

TEST_CASE("a line of Grid Engine's file of another form is named", "[unit]") {
  CHECK_THROWS_WITH(hosts_of("\n"), "PE_HOSTFILE f: expected at least one host, found none");
  CHECK_THROWS_WITH(hosts_of("s1 2 q p\ns2\n"),
                    ContainsSubstring("line 2, column 3: expected the number of slots after the host"));
  CHECK_THROWS_WITH(hosts_of("s1 2x q p\n"), ContainsSubstring("line 1, column 5: expected a space after"));
  CHECK_THROWS_WITH(hosts_of("s1 0 q p\n"), ContainsSubstring("line 1, column 4"));
  CHECK_THROWS_WITH(hosts_of("s1 1 q p more\n"), ContainsSubstring("column 10: expected the end of the line"));
}
