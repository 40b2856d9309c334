#include "base/environment.hpp"

#include <cstdlib>

#include "tests/catch.hpp"

TEST_CASE("current_environment holds every variable with its bytes", "[unit]") {
  REQUIRE(::setenv("RUNJOB_TEST_VARIABLE", "line one\nline=two \xff", 1) == 0);
  const runjob::Environment environment = runjob::current_environment();
  REQUIRE(environment.count("RUNJOB_TEST_VARIABLE") == 1);
  CHECK(environment.at("RUNJOB_TEST_VARIABLE") == "line one\nline=two \xff");
  REQUIRE(::unsetenv("RUNJOB_TEST_VARIABLE") == 0);
}

TEST_CASE("the files of a job's ranks are theirs inside of the job", "[unit]") {
  CHECK(runjob::is_inside_a_job({{"RUNJOB_JOB_ID", "7"}}));
  CHECK_FALSE(runjob::is_inside_a_job({{"RUNJOB_TIMELINE", "t.json"}}));
  for (const char* name : {"RUNJOB_TIMELINE", "HOROVOD_TIMELINE", "RUNJOB_COMMIT_DIR", "HOROVOD_COMMIT_DIR"})
    CHECK(runjob::names_files_of_job(name));
  for (const char* name : {"RUNJOB_STATUS_FILE", "RUNJOB_TIMELINE_MARK_CYCLES", "COMMIT_DIR"})
    CHECK_FALSE(runjob::names_files_of_job(name));
}
