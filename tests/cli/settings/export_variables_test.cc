#include "cli/settings/export_variables.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("option -x sets a value or takes the one that is here", "[unit]") {
  Warnings warnings;
  CHECK(export_variables({{"A=1", "B", "C=", "D=x=y", "A=2"}, "-x"}, {{"B", "here"}}, warnings) ==
        Environment{{"A", "2"}, {"B", "here"}, {"C", ""}, {"D", "x=y"}});
  CHECK(warnings.empty());
  CHECK(export_variables({{"MISSING"}, "-x"}, {}, warnings).empty());
  CHECK(warnings == Warnings{"-x: MISSING is not set here, so the ranks do not get it"});
}

TEST_CASE("option -x takes every name that a program can have in its environment", "[unit]") {
  Warnings warnings;
  CHECK(export_variables({{"spark.x=1", "A-B=2", "a.b"}, "-x"}, {{"a.b", "here"}}, warnings) ==
        Environment{{"spark.x", "1"}, {"A-B", "2"}, {"a.b", "here"}});
  CHECK(warnings.empty());
}

TEST_CASE("option -x refuses what is no name and what runjob itself sets", "[unit]") {
  Warnings warnings;
  for (const char* bad : {"", "=1"}) {
    INFO(bad);
    CHECK_THROWS_WITH(export_variables({{bad}, "-x"}, {}, warnings),
                      ContainsSubstring("is not the name of a variable; write NAME or NAME=VALUE"));
  }
  CHECK_THROWS_WITH(export_variables({{"=1"}, "file j"}, {}, warnings),
                    "file j, export: '' is not the name of a variable; write NAME or NAME=VALUE");
  CHECK_THROWS_WITH(export_variables({{"HOROVOD_RANK=3"}, "-x"}, {}, warnings),
                    "-x: HOROVOD_RANK is set by runjob for each rank; leave it out");
  CHECK(export_variables({{"HOROVOD_CYCLE_TIME=3", "RANKS=1"}, "-x"}, {}, warnings).size() == 2);
}
