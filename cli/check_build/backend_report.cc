#include "cli/check_build/backend_report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/program_path.hpp"

namespace runjob {

bool BackendReport::has(const std::string& name) const {
  return std::any_of(backends.begin(), backends.end(),
                     [&](const Backend& backend) { return backend.name == name && backend.available; });
}

BackendReport read_backend_report(const ProgramResult& probe) {
  BackendReport report;
  if (!probe.problem.empty()) {
    // If the probe could not open the library, its only line of output is the reason.
    report.problem = probe.output.empty() ? fmt::format("runjob-probe {}", probe.problem)
                                          : fmt::format("runjob-probe {}: {}", probe.problem, probe.output);
    report.problem.erase(report.problem.find_last_not_of('\n') + 1);
    return report;
  }
  try {
    const nlohmann::json document = parse_json(probe.output);
    for (const nlohmann::json& entry : document.at("backends")) {
      report.backends.push_back({entry.at("name").get<std::string>(), entry.at("available").get<bool>(),
                                 entry.value("version", ""), entry.value("path", ""), entry.value("reason", "")});
    }
  } catch (const nlohmann::json::exception& error) {
    report.backends.clear();
    report.problem = fmt::format("runjob-probe wrote what cannot be read: {}", error.what());
  }
  return report;
}

BackendReport probe_backends(const Environment& environment) {
  constexpr std::chrono::seconds kLimit{10};
  try {
    return read_backend_report(run_program({program_path("runjob-probe")}, environment, kLimit));
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

}  // namespace runjob
