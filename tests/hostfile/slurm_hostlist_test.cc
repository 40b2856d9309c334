#include "hostfile/slurm_hostlist.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

using Names = std::vector<std::string>;
using Counts = std::vector<int>;

namespace {

Names hosts(const std::string& text) {
  return parse_slurm_hostlist(text, "LIST");
}

Counts counts(const std::string& text) {
  return parse_slurm_counts(text, "COUNTS");
}

}  // namespace

TEST_CASE("SLURM's host lists are expanded in order", "[unit]") {
  CHECK(hosts("login2") == Names{"login2"});
  CHECK(hosts("n[01-03,7],login2") == Names{"n01", "n02", "n03", "n7", "login2"});
  CHECK(hosts("n[8-11]") == Names{"n8", "n9", "n10", "n11"});
  CHECK(hosts("n[08-11]") == Names{"n08", "n09", "n10", "n11"});
  CHECK(hosts("n[001,3,099-101]") == Names{"n001", "n3", "n099", "n100", "n101"});
  CHECK(hosts("r[1-2]n[0-1]") == Names{"r1n0", "r1n1", "r2n0", "r2n1"});
  CHECK(hosts("r[1-2]n[0-1]-ib.cluster") ==
        Names{"r1n0-ib.cluster", "r1n1-ib.cluster", "r2n0-ib.cluster", "r2n1-ib.cluster"});
  CHECK(hosts("gpu-a[1],gpu_b,3node") == Names{"gpu-a1", "gpu_b", "3node"});
  CHECK(hosts("n[1-100000]").size() == 100'000);
}

TEST_CASE("a text that is no host list is refused with the place", "[unit]") {
  CHECK_THROWS_WITH(hosts(""), "LIST: column 1: expected a host name, found the end");
  CHECK_THROWS_WITH(hosts("n1,"), "LIST: column 4: expected a host name, found the end");
  CHECK_THROWS_WITH(hosts("n[1-2"), "LIST: column 6: expected ',' or ']' in the range, found the end");
  CHECK_THROWS_WITH(hosts("n[2-1]"), "LIST: column 3: expected a range from low to high, found 2-1");
  CHECK_THROWS_WITH(hosts("me@n1"), "LIST: column 1: expected the name of a node, found a user");
  CHECK_THROWS_WITH(hosts("n1:2"), "LIST: column 3: expected ',' after a node, found ':'");
  for (const std::string bad : {"n[", "n[]", "n[x]", "n[1-]", "n[1,]", "n]", "-n1", "n1 n2", " n1", "n1\n", "n[[1]]",
                                "(null)", "None assigned", "n[1-2](x3)"}) {
    INFO(bad);
    CHECK_THROWS_AS(hosts(bad), Error);
  }
  CHECK_THROWS_AS(hosts("n[1-100001]"), Error);
  CHECK_THROWS_AS(hosts("n[1-60000],m[1-60000]"), Error);
  CHECK_THROWS_AS(hosts("a[1-1000]b[1-1000]"), Error);
}

TEST_CASE("SLURM's numbers for nodes are expanded", "[unit]") {
  CHECK(counts("4") == Counts{4});
  CHECK(counts("2(x3),1") == Counts{2, 2, 2, 1});
  CHECK(counts("1,2(x2),0") == Counts{1, 2, 2, 0});
  CHECK(counts("1(x100000)").size() == 100'000);
}

TEST_CASE("a text that is no list of numbers is refused with the place", "[unit]") {
  CHECK_THROWS_WITH(counts(""), "COUNTS: column 1: expected a number for a node, as in 2(x3),1, found the end");
  CHECK_THROWS_WITH(counts("2(3)"), "COUNTS: column 3: expected 'x' after '(', as in 2(x3), found '3'");
  CHECK_THROWS_WITH(counts("2(x3"), "COUNTS: column 5: expected ')' after the number, as in 2(x3), found the end");
  CHECK_THROWS_WITH(counts("2(x0)"),
                    "COUNTS: column 4: expected a number after '(x', as in 2(x3) from 1 to 100000, found '0'");
  for (const std::string bad : {",", "1,", "x", "-1", "1 ", "1(x2)(x3)", "1x2", "99999999999", "1(x99999999999)"}) {
    INFO(bad);
    CHECK_THROWS_AS(counts(bad), Error);
  }
  CHECK_THROWS_AS(counts("1(x100000),1"), Error);
}
