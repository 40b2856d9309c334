#include "hostfile/lsf_allocation.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/hostfile/host_texts.hpp"

using namespace runjob;

namespace {

std::string hosts_of(const std::string& text) {
  return text_of(parse_lsf_hosts(text, "LSB_MCPU_HOSTS"));
}

}  // namespace

TEST_CASE("LSF's variable has hosts and their slots in turn", "[unit]") {
  CHECK(hosts_of("hostA 2 hostB 4") == "hostA:2 hostB:4");  // the example of its reference
  CHECK(hosts_of(" hostA 2  hostB 4 hostA 1 ") == "hostA:3 hostB:4");
}

TEST_CASE("where LSF's variable has another form is named", "[unit]") {
  CHECK_THROWS_WITH(hosts_of(" "), ContainsSubstring("LSB_MCPU_HOSTS: column 2: expected"));
  CHECK_THROWS_WITH(hosts_of("hostA"), ContainsSubstring("column 6: expected the number of slots after the host"));
  CHECK_THROWS_WITH(hosts_of("hostA 2hostB 4"), ContainsSubstring("column 8: expected a space after"));
  CHECK_THROWS_WITH(hosts_of("hostA 2 hostB"), ContainsSubstring("column 14: expected the number of slots"));
}
