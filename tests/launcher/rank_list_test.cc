#include "launcher/rank_list.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("ranks are listed in order, three or more in a row as a range", "[unit]") {
  CHECK(rank_list({}).empty());
  CHECK(rank_list({3}) == "3");
  CHECK(rank_list({1, 0}) == "0, 1");
  CHECK(rank_list({7, 2, 1, 0, 5, 9, 8}) == "0-2, 5, 7-9");
  CHECK(ranks_text({4}) == "rank 4");
  CHECK(ranks_text({4, 6}) == "ranks 4, 6");
}
