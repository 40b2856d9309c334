#include "launcher/elastic/generation_line.hpp"

#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

TEST_CASE("the line about a generation has its reason, its ranks, and where no process starts", "[unit]") {
  NewGeneration generation{"rank 1 on s2 was killed", 3, 2, 210ms, {}};
  CHECK(generation_line(generation) ==
        "rank 1 on s2 was killed. The job goes on with 2 ranks (generation 3), which stood still for 0.21 s.");
  generation.reason = "it has ended.";
  generation.ranks = 1;
  generation.excluded = {"s2", "s3 for 20 s"};
  CHECK(generation_line(generation) ==
        "it has ended. The job goes on with 1 rank (generation 3), which stood still for 0.21 s; no new process starts "
        "on "
        "s2, s3 for 20 s.");
  generation.excluded = {"s2", "s3", "s4", "s5", "s6", "s7"};
  CHECK_THAT(generation_line(generation), ContainsSubstring("starts on s2, s3, s4, s5 and 2 other hosts."));
}

TEST_CASE("a change of hosts names the ranks, of many only how many", "[unit]") {
  CHECK(change_text({}, {}) == "the hosts have changed");
  CHECK(change_text({"rank 2 on s2"}, {"rank 3 on s4"}) ==
        "the hosts have changed: rank 2 on s2 has left, rank 3 on s4 has come");
  CHECK(change_text({}, {"a", "b", "c", "d", "e"}) == "the hosts have changed: 5 ranks have come");
}
