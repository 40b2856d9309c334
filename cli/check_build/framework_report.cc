#include "cli/check_build/framework_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"

namespace runjob {
namespace {

/// Prints {"python", "version", "package", "modules", "distributions"}. Nothing from the current directory is
/// imported, and our package is looked for without running it.
constexpr const char* kScript = R"python(
import sys
sys.path[:] = [p for p in sys.path if p]
import importlib.machinery, importlib.metadata, json, os
found = {}
for d in importlib.metadata.distributions():
    try:
        found.setdefault(d.metadata["Name"].lower().replace("_", "-"), d.version)
    except Exception:
        pass
spec = importlib.machinery.PathFinder.find_spec("runjob", sys.path)
places = list(spec.submodule_search_locations or []) if spec else []
modules = set()
for place in places:
    for entry in os.listdir(place):
        modules.add(entry[:-3] if entry.endswith(".py") else entry)
print(json.dumps({"python": sys.executable, "version": sys.version.split()[0], "package": places[0] if places else "",
                  "modules": sorted(modules), "distributions": found}))
)python";

/// TensorFlow and MXNet come under several distribution names, one per kind of device.
bool is_distribution_of(std::string_view module, const std::string& name) {
  const auto starts_with = [&](std::string_view start) { return name.compare(0, start.size(), start) == 0; };
  if (module == "mxnet") return name == "mxnet" || starts_with("mxnet-cu");
  if (module != "tensorflow") return name == module;
  for (const std::string_view known : {"tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-cpu-aws",
                                       "tensorflow-rocm", "tensorflow-macos", "intel-tensorflow", "tf-nightly"}) {
    if (name == known) return true;
  }
  return false;
}

FrameworkReport all_frameworks() {
  FrameworkReport report;
  report.frameworks = {{"TensorFlow", "tensorflow", "", false},
                       {"PyTorch", "torch", "", false},
                       {"MXNet", "mxnet", "", false},
                       {"Keras", "keras", "", false},
                       {"JAX", "jax", "", false}};
  return report;
}

void fill(FrameworkReport& report, const nlohmann::json& document) {
  report.python =
      fmt::format("{} ({})", document.at("python").get<std::string>(), document.at("version").get<std::string>());
  report.package = document.at("package").get<std::string>();
  for (Framework& framework : report.frameworks) {
    for (const auto& [name, version] : document.at("distributions").items()) {
      if (framework.version.empty() && is_distribution_of(framework.module, name) && version.is_string())
        framework.version = version.get<std::string>();
    }
    for (const nlohmann::json& module : document.at("modules"))
      framework.has_binding = framework.has_binding || module.get<std::string>() == framework.module;
  }
}

}  // namespace

FrameworkReport read_framework_report(const ProgramResult& python) {
  FrameworkReport report = all_frameworks();
  if (!python.problem.empty()) {
    report.problem = fmt::format("python {}", python.problem);
    return report;
  }
  try {
    FrameworkReport filled = report;
    fill(filled, parse_json(python.output));
    return filled;
  } catch (const nlohmann::json::exception& error) {
    report.problem = fmt::format("python wrote what cannot be read: {}", error.what());
  }
  return report;
}

FrameworkReport ask_python(const Environment& environment) {
  constexpr std::chrono::seconds kLimit{20};
  FrameworkReport report = all_frameworks();
  report.problem = "there is no python3 or python on PATH";
  for (const char* name : {"python3", "python"}) {
    try {
      const ProgramResult result = run_program({name, "-c", kScript}, environment, kLimit);
      if (result.problem.find("could not be started") != std::string::npos) continue;
      report = read_framework_report(result);
    } catch (const Error& error) {
      report.problem = error.what();
    }
    if (report.problem.empty()) break;
  }
  return report;
}

}  // namespace runjob
