#include "cli/check_build/backend_report.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("the probe's document becomes a report", "[unit]") {
  const BackendReport report = read_backend_report(
      {R"({"backends":[{"name":"gloo","kind":"cpu","available":true,"version":"0.5.0","path":"/g.so","reason":""},)"
       R"({"name":"mpi","kind":"cpu","available":false,"version":"","path":"","reason":"not built"}]})",
       ""});
  CHECK(report.problem.empty());
  REQUIRE(report.backends.size() == 2);
  CHECK(report.has("gloo"));
  CHECK_FALSE(report.has("mpi"));
  CHECK_FALSE(report.has("nccl"));
  CHECK(report.backends[0].path == "/g.so");
  CHECK(report.backends[1].reason == "not built");
}

TEST_CASE("a probe that fails in any way is a problem, never an exception", "[unit]") {
  CHECK(read_backend_report({"", "was killed by signal 11 (Segmentation fault)"}).problem ==
        "runjob-probe was killed by signal 11 (Segmentation fault)");
  CHECK(read_backend_report({"librunjob.so is not there\n", "exited with status 1"}).problem ==
        "runjob-probe exited with status 1: librunjob.so is not there");
  for (const char* nonsense : {"", "x", "{}", "[]", "{\"backends\":1}", "{\"backends\":[{}]}",
                               "{\"backends\":[{\"name\":1,\"available\":true}]}",
                               "{\"backends\":[{\"name\":\"g\",\"available\":true,\"version\":7}]}"}) {
    INFO(nonsense);
    const BackendReport report = read_backend_report({nonsense, ""});
    CHECK_THAT(report.problem, ContainsSubstring("runjob-probe wrote what cannot be read: "));
    CHECK(report.backends.empty());
  }
}

TEST_CASE("without a probe beside the program the report says where it was looked for", "[unit]") {
  const BackendReport report = probe_backends(current_environment());
  CHECK((report.problem.empty() ? !report.backends.empty() : report.problem.find("runjob-probe") != std::string::npos));
}
