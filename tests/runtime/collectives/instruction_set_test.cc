#include "runtime/collectives/instruction_set.hpp"

#include <algorithm>

#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("every processor has the plain instructions, and the best set comes last", "[runtime][unit]") {
  const auto sets = instruction_sets();
  REQUIRE_FALSE(sets.empty());
  CHECK(sets.front() == InstructionSet::kPlain);
  CHECK(std::is_sorted(sets.begin(), sets.end()));
  CHECK(best_instruction_set() == sets.back());
}

TEST_CASE("instruction sets have names", "[runtime][unit]") {
  CHECK(to_string(InstructionSet::kPlain) == "plain");
  CHECK(to_string(InstructionSet::kAvx2) == "AVX2");
  CHECK(to_string(InstructionSet::kAvx512) == "AVX-512");
}
