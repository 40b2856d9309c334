#include "cli/check_build/check_build.hpp"

#include <fmt/format.h>

#include "base/version.hpp"
#include "cli/check_build/linked_libraries.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("option --check-build has horovodrun's layout, then versions, paths and reasons", "[unit]") {
  std::string linked = "\nLinked in:\n";
  for (const LinkedLibrary& each : kLinkedLibraries) {
    CHECK(std::string(each.version) != "unknown");  // on the systems that the tests run on
    linked += fmt::format("    {:<14}  {}\n", each.name, each.version);
  }
  BackendReport backends;
  backends.backends = {{"gloo", true, "0.5.0", "/usr/lib/libgloo.so.0", ""},
                       {"mpi", false, "", "", "this build has no MPI backend"}};
  FrameworkReport frameworks;
  frameworks.python = "/usr/bin/python3 (3.11.2)";
  frameworks.package = "/p/runjob";
  frameworks.frameworks = {{"TensorFlow", "tensorflow", "2.21.0", false},
                           {"PyTorch", "torch", "2.9.1", true},
                           {"MXNet", "mxnet", "", false}};
  CHECK(check_build_text(backends, frameworks) ==
        std::string("runjob v") + kVersion +
            ":\n\n"
            "Available Frameworks:\n"
            "    [ ] TensorFlow\n"
            "    [X] PyTorch\n"
            "    [ ] MXNet\n\n"
            "Available Controllers:\n"
            "    [ ] MPI\n"
            "    [X] Gloo\n\n"
            "Available Tensor Operations:\n"
            "    [ ] NCCL\n"
            "    [ ] DDL\n"
            "    [ ] CCL\n"
            "    [ ] MPI\n"
            "    [X] Gloo    \n\n"
            "Frameworks in /usr/bin/python3 (3.11.2):\n"
            "    TensorFlow  2.21.0, without runjob.tensorflow: this version has none\n"
            "    PyTorch     2.9.1, with runjob.torch\n"
            "    MXNet       absent: not installed in this Python\n\n"
            "Backends:\n"
            "    gloo        0.5.0, /usr/lib/libgloo.so.0\n"
            "    mpi         absent: this build has no MPI backend\n\n"
            "Backend of a job (--verbose shows the choice and its reason):\n"
            "    one rank                  none needed\n"
            "    ranks on one host         TCP\n"
            "    ranks on several hosts    TCP\n" +
            linked);
  backends.backends.push_back({"shm", true, "0.1.0", "/lib/librunjob.so", ""});
  CHECK_THAT(check_build_text(backends, frameworks),
             ContainsSubstring("    ranks on one host         shared memory\n"
                               "    ranks on several hosts    shared memory on each host, TCP between hosts\n"));
}

TEST_CASE("option --check-build says when the probe or Python failed", "[unit]") {
  FrameworkReport frameworks;
  frameworks.problem = "there is no python3 or python on PATH";
  frameworks.frameworks = {{"PyTorch", "torch", "", false}};
  CHECK(check_build_text({}, frameworks, true).starts_with("Horovod v0.28.1:\n\nAvailable Frameworks:\n"));
  const std::string text = check_build_text({{}, "runjob-probe did not end within 10 s"}, frameworks);
  CHECK_THAT(text, ContainsSubstring("    [ ] PyTorch\n"));
  CHECK_THAT(text, ContainsSubstring("    PyTorch     not known: there is no python3 or python on PATH\n"));
  CHECK_THAT(text, ContainsSubstring("Backends:\n    not known: runjob-probe did not end within 10 s\n"));
}
