#include "runtime/negotiation/members.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("the members of a job are its ranks", "[runtime][unit]") {
  const Members members({"a", "b"});
  CHECK(members.size() == 2);
  CHECK(members.process_set() == 0);
  CHECK(members.rank(1) == 1);
  CHECK(members.index_of(1) == 1);
  CHECK_FALSE(members.index_of(2));
  CHECK_FALSE(members.index_of(-1));
  CHECK(rank_text(1, members) == "rank 1 on b");
}

TEST_CASE("the members of a process set are called by their ranks in the job", "[runtime][unit]") {
  const Members members(7, {2, 5}, {"s1", "s2"});
  CHECK(members.size() == 2);
  CHECK(members.process_set() == 7);
  CHECK(members.rank(1) == 5);
  CHECK(members.index_of(5) == 1);
  CHECK_FALSE(members.index_of(0));
  CHECK_FALSE(members.index_of(3));
  CHECK(rank_text(1, members) == "rank 5 on s2");
}
