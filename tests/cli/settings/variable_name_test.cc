#include "cli/settings/variable_name.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("a variable's name is one that an environment can have", "[unit]") {
  for (const char* good : {"A", "_", "a1_B", "spark.app.name", "BASH_FUNC_f%%", "1A", "A-B", "A B"}) {
    INFO(good);
    CHECK(is_variable_name(good));
  }
  for (const std::string_view bad : {std::string_view(), std::string_view("A="), std::string_view("A\0B", 3)}) {
    INFO(bad);
    CHECK_FALSE(is_variable_name(bad));
  }
}

TEST_CASE("variables that give a rank its place in the job are known under both prefixes", "[unit]") {
  for (const char* given : {"RUNJOB_RANK", "HOROVOD_RANK", "HOROVOD_SIZE", "RUNJOB_JOB_KEY_FILE"}) {
    INFO(given);
    CHECK(is_given_to_ranks(given));
  }
  for (const char* other : {"RANK", "RUNJOB_", "RUNJOB_RANKS", "HOROVOD_CYCLE_TIME", "MY_RUNJOB_RANK"}) {
    INFO(other);
    CHECK_FALSE(is_given_to_ranks(other));
  }
}
