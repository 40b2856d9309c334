#include "cli/settings/environment_settings.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/edit_distance.hpp"
#include "cli/options/option_table.hpp"

namespace runjob {
namespace {

/// RUNJOB_ variables that are not options of runjob: what a rank is given, then what its runtime reads or names in a
/// warning. docs/environment.md explains them.
constexpr std::string_view kNotOptions[] = {
    "RENDEZVOUS",
    "JOB_KEY_FILE",
    "JOB_ID",
    "RANK",
    "SIZE",
    "LOCAL_RANK",
    "LOCAL_SIZE",
    "CROSS_RANK",
    "CROSS_SIZE",
    "HOSTNAME",
    "GENERATION",
    "ELASTIC",
    "PROCESS_NUMBER",
    "FOLD_TRACEBACKS",
    "ADDRESS",
    "GLOO_IFACE",
    "GLOO_TIMEOUT_SECONDS",
    "SHARED_MEMORY",
    "CMA",
    "CPU_OPERATIONS",
    "FUSION_THRESHOLD",
    "DISABLE_GROUP_FUSION",
    "CACHE_CAPACITY",
    "TIMELINE",
    "TIMELINE_MARK_CYCLES",
    "STALL_CHECK_DISABLE",
    "STALL_CHECK_TIME_SECONDS",
    "STALL_SHUTDOWN_TIME_SECONDS",
    "DYNAMIC_PROCESS_SETS",
    "LOG_LEVEL",
    "LOG_HIDE_TIME",
    "LIBRARY",
    "NCCL_LIBRARY",
    "NCCL_UNENCRYPTED",
    "NUM_NCCL_STREAMS",
    "BIN",
    "NETWORK_VARIABLES",
    "TENSORFLOW_SYNCHRONOUS",
    "TORCH_BACKEND_PID",
};

bool counts_as_unset(std::string_view variable, std::string_view value, bool inside_a_job) {
  if (value.empty()) return true;
  if (variable == "HOROVOD_START_TIMEOUT" && value == "0") return true;
  if (inside_a_job && names_files_of_job(variable)) return true;
  return value == "DYNAMIC" && (variable == "RUNJOB_TIMELINE" || variable == "HOROVOD_TIMELINE");
}

void warn_of_unknown(const Environment& environment, Warnings& warnings) {
  constexpr std::string_view kPrefix = "RUNJOB_";
  std::vector<std::string> known;
  for (const std::string_view name : kNotOptions) known.push_back(fmt::format("{}{}", kPrefix, name));
  for (const Option& option : option_table())
    known.insert(known.end(), option.variables.begin(), option.variables.end());
  for (const auto& [variable, value] : environment) {
    if (variable.compare(0, kPrefix.size(), kPrefix) != 0) continue;
    if (std::find(known.begin(), known.end(), variable) != known.end()) continue;
    const std::string meant = nearest(variable, known);
    warnings.push_back(fmt::format("unknown environment variable {} has no effect{}", variable,
                                   meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
  }
}

}  // namespace

Settings environment_settings(const Environment& environment, Warnings& warnings) {
  warn_of_unknown(environment, warnings);
  const bool inside_a_job = is_inside_a_job(environment);
  Settings settings;
  for (const Option& option : option_table()) {
    for (const std::string_view variable : option.variables) {
      const auto found = environment.find(variable);
      if (found == environment.end() || counts_as_unset(variable, found->second, inside_a_job)) continue;
      settings[std::string(option.name)] = Setting{{found->second}, fmt::format("environment {}", variable)};
      break;
    }
  }
  return settings;
}

}  // namespace runjob
