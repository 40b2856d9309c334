#include "hostfile/pbs_allocation.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/hostfile/host_texts.hpp"

using namespace runjob;

namespace {

std::string hosts_of(const std::string& text) {
  return text_of(parse_pbs_nodes(text, "PBS_NODEFILE f"));
}

}  // namespace

TEST_CASE("each line of PBS's file is a slot of the host on it", "[unit]") {
  // The form in the user's guide of OpenPBS for `select=2:ncpus=16:mpiprocs=4`, and of Torque for `nodes=2:ppn=2`.
  CHECK(hosts_of("node01.cluster\nnode01.cluster\nnode01.cluster\nnode01.cluster\nnode02.cluster\n") ==
        "node01.cluster:4 node02.cluster:1");
  CHECK(hosts_of("n2\nn1\nn2\nn1\n") == "n2:2 n1:2");
  CHECK(hosts_of("n1\r\n\r\n  n2  ") == "n1:1 n2:1");
}

TEST_CASE("a line of PBS's file that is no host is named", "[unit]") {
  CHECK_THROWS_WITH(hosts_of(""), "PBS_NODEFILE f: expected at least one host, found none");
  CHECK_THROWS_WITH(hosts_of("n1\nn2 4\n"),
                    "PBS_NODEFILE f: line 2, column 4: expected the end of the line, found '4'");
  CHECK_THROWS_WITH(hosts_of("n1\n;n2\n"), ContainsSubstring("line 2, column 1: expected a host name"));
}
