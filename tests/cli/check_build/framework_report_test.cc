#include "cli/check_build/framework_report.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("distributions become frameworks, bindings are looked up in our package", "[unit]") {
  const FrameworkReport report = read_framework_report(
      {R"({"python":"/usr/bin/python3","version":"3.11.2","package":"/p/runjob","modules":["torch","_core"],)"
       R"("distributions":{"torch":"2.9.1","tensorflow-cpu":"2.21.0","tensorflow-datasets":"4","mxnet-cu112":"1.9"}})",
       ""});
  CHECK(report.problem.empty());
  CHECK(report.python == "/usr/bin/python3 (3.11.2)");
  REQUIRE(report.frameworks.size() == 5);
  CHECK(report.frameworks[0].version == "2.21.0");
  CHECK_FALSE(report.frameworks[0].usable());
  CHECK(report.frameworks[1].version == "2.9.1");
  CHECK(report.frameworks[1].usable());
  CHECK(report.frameworks[2].version == "1.9");
  CHECK(report.frameworks[3].version.empty());
}

TEST_CASE("a Python that fails in any way is a problem, never an exception", "[unit]") {
  CHECK(read_framework_report({"", "exited with status 1"}).problem == "python exited with status 1");
  for (const char* nonsense : {"", "x", "{}", "[1]", R"({"python":1})",
                               R"({"python":"p","version":"3","package":"","modules":[1],"distributions":{}})"}) {
    INFO(nonsense);
    const FrameworkReport report = read_framework_report({nonsense, ""});
    CHECK_THAT(report.problem, ContainsSubstring("python wrote what cannot be read: "));
    CHECK(report.frameworks.size() == 5);
  }
}

TEST_CASE("the Python on PATH answers", "[unit][python]") {
  const FrameworkReport report = ask_python(current_environment());
  CHECK(report.problem.empty());
  CHECK_THAT(report.python, ContainsSubstring("python"));
  CHECK(report.frameworks.size() == 5);
}
