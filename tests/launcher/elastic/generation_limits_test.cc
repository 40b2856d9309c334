#include "launcher/elastic/generation_limits.hpp"

#include "tests/catch.hpp"

using namespace runjob;

namespace {

GenerationLimits::Next next(std::int64_t commit, int newcomers, bool after_loss, bool own_failure) {
  return {commit, newcomers, after_loss, own_failure};
}

}  // namespace

TEST_CASE("a loss and the growth that replaces it are one reset, and Horovod counts both", "[unit]") {
  GenerationLimits ours(1, /*as_horovod=*/false);
  ours.lost(1);
  CHECK(ours.refuse(next(1, 0, true, false), "a loss").empty());
  CHECK(ours.refuse(next(2, 1, false, false), "growth").empty());
  CHECK(ours.refuse(next(3, 1, false, false), "growth") ==
        "the 1 new generations of --reset-limit are used up: growth");
  GenerationLimits horovods(1, /*as_horovod=*/true);
  horovods.lost(1);
  CHECK(horovods.refuse(next(1, 0, true, false), "a loss").empty());
  CHECK(horovods.refuse(next(2, 1, false, false), "growth") ==
        "Horovod was shutdown because number of resets during elastic job exceeded limit: 1; the last one because "
        "growth");
}

TEST_CASE("five failures in a row without a commit end the job, except by Horovod's rules", "[unit]") {
  GenerationLimits ours(std::nullopt, false), horovods(std::nullopt, true);
  for (int i = 0; i < 4; ++i) {
    CHECK(ours.refuse(next(-1, 0, true, true), "a failure").empty());
    CHECK(horovods.refuse(next(-1, 0, true, true), "a failure").empty());
  }
  CHECK(horovods.refuse(next(-1, 0, true, true), "a failure").empty());
  SECTION("the fifth one") {
    CHECK_THAT(ours.refuse(next(-1, 0, true, true), "a failure"), ContainsSubstring("5 generations in a row"));
  }
  SECTION("a commit is progress") {
    CHECK(ours.refuse(next(0, 0, true, true), "a failure").empty());
    ours.formed(0);
    CHECK(ours.refuse(next(0, 0, true, true), "a failure").empty());
  }
  SECTION("a lost host is no failure of a rank's own") {
    CHECK(ours.refuse(next(-1, 0, true, false), "a lost host").empty());
  }
}
