#include "launcher/supervision/core_notices.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("the number of threads is told when a host has several ranks", "[unit]") {
  CHECK(threads_notice({{"a", 8, 8, 1}, {"b", 4, 4, 1}}).empty());
  CHECK(threads_notice({{"a", 8, 8, 2}, {"b", 8, 8, 2}}) ==
        "OMP_NUM_THREADS was not set and is 4 for each rank now: a host's cores shared among its ranks; set it to "
        "choose");
  CHECK_THAT(threads_notice({{"a", 8, 8, 2}, {"b", 4, 4, 4}, {"c", 8, 8, 1}}),
             ContainsSubstring("is 1 to 8 for each rank"));
}

TEST_CASE("ranks that share cores because of an affinity are told of it", "[unit]") {
  CHECK(affinity_notice({"s1", 1, 8, 4}) ==
        "the 4 ranks on s1 share 1 of its 8 cores, all that they may use there (by taskset, a batch system or a "
        "container)");
  CHECK(affinity_notice({"s1", 4, 8, 4}).empty());
  CHECK(affinity_notice({"s1", 2, 2, 4}).empty());  // more ranks than the host has cores: no accident
}

TEST_CASE("options that could not act are named", "[unit]") {
  CHECK(idle_options_notice({}).empty());
  CHECK(idle_options_notice({"--encrypt-data"}) ==
        "no rank called init(), so --encrypt-data had no effect: it is for programs with runjob's own collectives, and "
        "does not act on torch.distributed or MPI (docs/ddp.md)");
  CHECK_THAT(idle_options_notice({"--encrypt-data", "RUNJOB_TIMELINE"}),
             ContainsSubstring("so --encrypt-data, RUNJOB_TIMELINE had no effect: they are for"));
}

TEST_CASE("input that was lost is counted", "[unit]") {
  CHECK(
      lost_input_notice(70) ==
      "rank 0 has read nothing of its standard input: the 70 bytes that runjob took for it are lost; if they were for "
      "others, as in a loop (while read ...), start runjob with --stdin none or with </dev/null");
  CHECK_THAT(lost_input_notice(1), ContainsSubstring("the byte that runjob took for it is lost; if it was for"));
}
