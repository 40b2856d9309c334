#include "runtime/collectives/shm/tuning/processor_move.hpp"

#include <sched.h>
#include <vector>

#include "tests/catch.hpp"

using runjob::runtime::move_away_from;

namespace {

cpu_set_t affinity() {
  cpu_set_t set;
  REQUIRE(::sched_getaffinity(0, sizeof set, &set) == 0);
  return set;
}

std::vector<int> processors_of(const cpu_set_t& set) {
  std::vector<int> result;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<std::size_t>(i), &set)) result.push_back(i);
  }
  return result;
}

}  // namespace

TEST_CASE("a thread moves to the one processor that is free, and may run everywhere as before", "[runtime][unit]") {
  const cpu_set_t before = affinity();
  const std::vector<int> all = processors_of(before);
  for (const int free : all) {
    std::vector<int> taken;
    for (const int processor : all) {
      if (processor != free) taken.push_back(processor);
    }
    bool was_there = all.size() == 1;
    for (int attempt = 0; attempt < 100 && !was_there;
         ++attempt) {  // the system may move it on at once, but not always
      REQUIRE(move_away_from(taken));
      was_there = ::sched_getcpu() == free;
    }
    CHECK(was_there);
    const cpu_set_t after = affinity();
    CHECK(CPU_EQUAL(&before, &after));
  }
}

TEST_CASE("a thread stays when no processor is free", "[runtime][unit]") {
  const cpu_set_t before = affinity();
  CHECK_FALSE(move_away_from(processors_of(before)));
  const cpu_set_t after = affinity();
  CHECK(CPU_EQUAL(&before, &after));
}
