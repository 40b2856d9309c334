#include "cli/check_build/check_build.hpp"

#include <fmt/format.h>

#include "base/version.hpp"
#include "cli/check_build/linked_libraries.hpp"
#include "cli/check_build/version.hpp"

namespace runjob {
namespace {

char box(bool yes) {
  return yes ? 'X' : ' ';
}

bool is_usable(const FrameworkReport& report, std::string_view title) {
  for (const Framework& framework : report.frameworks) {
    if (framework.title == title) return framework.usable();
  }
  return false;
}

/// Source: horovodrun 0.28.1's --check-build, which other programs read.
std::string horovodrun_part(const BackendReport& backends, const FrameworkReport& frameworks, bool as_horovodrun) {
  const std::string who =
      as_horovodrun ? fmt::format("Horovod v{}", kHorovodVersion) : fmt::format("runjob v{}", kVersion);
  std::string text = fmt::format("{}:\n\nAvailable Frameworks:\n", who);
  for (const char* title : {"TensorFlow", "PyTorch", "MXNet"})
    text += fmt::format("    [{}] {}\n", box(is_usable(frameworks, title)), title);
  const char mpi = box(backends.has("mpi"));
  const char gloo = box(backends.has("gloo"));
  text += fmt::format("\nAvailable Controllers:\n    [{}] MPI\n    [{}] Gloo\n", mpi, gloo);
  text += fmt::format("\nAvailable Tensor Operations:\n    [{}] NCCL\n    [{}] DDL\n    [{}] CCL\n",
                      box(backends.has("nccl")), box(backends.has("ddl")), box(backends.has("ccl")));
  return text + fmt::format("    [{}] MPI\n    [{}] Gloo    \n", mpi, gloo);
}

std::string describe(const Framework& framework, const FrameworkReport& report) {
  if (!report.problem.empty()) return "not known: " + report.problem;
  const std::string binding = fmt::format("runjob.{}", framework.module);
  if (framework.version.empty()) return "absent: not installed in this Python";
  if (framework.has_binding) return fmt::format("{}, with {}", framework.version, binding);
  if (report.package.empty())
    return fmt::format("{}, without {}: runjob's Python package is not installed there", framework.version, binding);
  return fmt::format("{}, without {}: this version has none", framework.version, binding);
}

std::string framework_part(const FrameworkReport& report) {
  std::string text = report.python.empty() ? "\nFrameworks:\n" : fmt::format("\nFrameworks in {}:\n", report.python);
  for (const Framework& framework : report.frameworks)
    text += fmt::format("    {:<10}  {}\n", framework.title, describe(framework, report));
  return text;
}

std::string backend_part(const BackendReport& report) {
  std::string text = "\nBackends:\n";
  if (!report.problem.empty()) return text + fmt::format("    not known: {}\n", report.problem);
  for (const Backend& backend : report.backends) {
    text += backend.available ? fmt::format("    {:<10}  {}, {}\n", backend.name, backend.version, backend.path)
                              : fmt::format("    {:<10}  absent: {}\n", backend.name, backend.reason);
  }
  return text;
}

/// The backend that a job gets, by where its ranks are: what its ranks log at level INFO.
std::string choice_part(const BackendReport& report) {
  if (!report.problem.empty()) return {};
  const char* within = report.has("shm") ? "shared memory" : "TCP";
  return fmt::format(
      "\nBackend of a job (--verbose shows the choice and its reason):\n"
      "    {:<24}  {}\n    {:<24}  {}\n    {:<24}  {}\n",
      "one rank", "none needed", "ranks on one host", within, "ranks on several hosts",
      report.has("shm") ? "shared memory on each host, TCP between hosts" : "TCP");
}

std::string linked_part() {
  std::string text = "\nLinked in:\n";
  for (const LinkedLibrary& library : kLinkedLibraries)
    text += fmt::format("    {:<14}  {}\n", library.name, library.version);
  return text;
}

}  // namespace

std::string check_build_text(const BackendReport& backends, const FrameworkReport& frameworks, bool as_horovodrun) {
  return horovodrun_part(backends, frameworks, as_horovodrun) + framework_part(frameworks) + backend_part(backends) +
         choice_part(backends) + linked_part();
}

std::string check_build(const Environment& environment, bool as_horovodrun) {
  return check_build_text(probe_backends(environment), ask_python(environment), as_horovodrun);
}

}  // namespace runjob
