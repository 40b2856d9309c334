#include "hostfile/rank_list.hpp"

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

TEST_CASE("a list of ranks is read, ranges and all", "[unit]") {
  const auto read = [](std::string_view text) { return parse_rank_list(text, "--output-ranks", 8); };
  CHECK(read("3") == std::vector<int>{3});
  CHECK(read("7,0-2, 1") == std::vector<int>{0, 1, 2, 7});
  CHECK(read(rank_list({0, 1, 2, 5})) == std::vector<int>{0, 1, 2, 5});
  for (const char* bad : {"", "x", "1,", "-1", "1-", "1--2", "0x1", "1.5", "99999999999"}) {
    INFO(bad);
    CHECK_THROWS_WITH(read(bad), "--output-ranks: '" + std::string(bad) + "' is not a list of ranks such as 0,4-7");
  }
  CHECK_THROWS_WITH(read("0,8"), "--output-ranks: there is no rank 8 in a job of 8; the last one is 7");
  CHECK_THROWS_WITH(read("5-2"), "--output-ranks: the range 5-2 is empty; write the smaller rank first");
}
