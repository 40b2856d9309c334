#include "base/environment.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tests/catch.hpp"
#include "tests/temporary_directory.hpp"

TEST_CASE("current_environment holds every variable with its bytes", "[unit]") {
  REQUIRE(::setenv("RUNJOB_TEST_VARIABLE", "line one\nline=two \xff", 1) == 0);
  const runjob::Environment environment = runjob::current_environment();
  REQUIRE(environment.count("RUNJOB_TEST_VARIABLE") == 1);
  CHECK(environment.at("RUNJOB_TEST_VARIABLE") == "line one\nline=two \xff");
  REQUIRE(::unsetenv("RUNJOB_TEST_VARIABLE") == 0);
}

// The program of the test below.
TEST_CASE("prints which variables it sees, if it has more rights than its caller", "[.setuid]") {
  if (::getauxval(AT_SECURE) == 0) return static_cast<void>(std::puts("no more rights"));
  for (const auto& [name, value] : runjob::current_environment()) std::printf("%s=%s\n", name.c_str(), value.c_str());
}

TEST_CASE("a program with more rights than its caller follows no variable to a library", "[unit]") {
  if (::geteuid() != 0) return static_cast<void>(std::puts("skipped: a program of another user needs root"));
  const runjob::TemporaryDirectory folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  const std::string program = folder.path() + "/program";
  std::filesystem::copy_file("/proc/self/exe", program);
  REQUIRE(::chmod(program.c_str(), 04755) == 0);
  const std::string command = fmt::format(
      "exec setpriv --reuid 65534 --regid 65534 --clear-groups env RUNJOB_NCCL_LIBRARY=/l PMIX_PREFIX=/l "
      "OPAL_PREFIX=/l "
      "PRTE_PREFIX=/l OMPI_LIBDIR_LOC=/l RUNJOB_OTHER=/l {} '[.setuid]'",
      program);
  FILE* const output = ::popen(command.c_str(), "r");
  REQUIRE(output != nullptr);
  std::string text;
  for (int c = std::fgetc(output); c != EOF; c = std::fgetc(output)) text.push_back(static_cast<char>(c));
  REQUIRE(::pclose(output) == 0);
  if (text.find("no more rights") != text.npos)
    return static_cast<void>(std::puts("skipped: setuid has no effect here"));
  CHECK_THAT(text, ContainsSubstring("RUNJOB_OTHER=/l\n"));
  for (const char* name : {"RUNJOB_NCCL_LIBRARY", "PMIX_PREFIX", "OPAL_PREFIX", "PRTE_PREFIX", "OMPI_LIBDIR_LOC"})
    CHECK_THAT(text, !ContainsSubstring(name));
}

TEST_CASE("the files of a job's ranks are theirs inside of the job", "[unit]") {
  CHECK(runjob::is_inside_a_job({{"RUNJOB_JOB_ID", "7"}}));
  CHECK_FALSE(runjob::is_inside_a_job({{"RUNJOB_TIMELINE", "t.json"}}));
  for (const char* name : {"RUNJOB_TIMELINE", "HOROVOD_TIMELINE", "RUNJOB_COMMIT_DIR", "HOROVOD_COMMIT_DIR"})
    CHECK(runjob::names_files_of_job(name));
  for (const char* name : {"RUNJOB_STATUS_FILE", "RUNJOB_TIMELINE_MARK_CYCLES", "COMMIT_DIR"})
    CHECK_FALSE(runjob::names_files_of_job(name));
}
