#include "launcher/threads_notice.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("the number of threads is told when a host has several ranks", "[unit]") {
  CHECK(threads_notice({{8, 1}, {4, 1}}).empty());
  CHECK(threads_notice({{8, 2}, {8, 2}}) ==
        "OMP_NUM_THREADS was not set and is 4 for each rank now: a host's cores shared among its ranks; set it to "
        "choose");
  CHECK_THAT(threads_notice({{8, 2}, {4, 4}, {8, 1}}), ContainsSubstring("is 1 to 8 for each rank"));
}
