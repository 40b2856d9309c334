#include "hostfile/slurm_task.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "hostfile/allocation.hpp"
#include "hostfile/slurm_allocation.hpp"
#include "hostfile/slurm_hostlist.hpp"

namespace runjob {
namespace {

int number_in(const Environment& environment, const char* name, int low, int high) {
  try {
    return static_cast<int>(parse_integer(value_of(environment, name), name, low, high));
  } catch (const Error& error) {
    throw Error(Errc::kHostfile, error.what());
  }
}

/// "12000-12003,12010".
std::vector<int> ports_in(const Environment& environment, const char* name) {
  constexpr std::size_t kMost = 1024;
  std::vector<int> ports;
  std::string_view rest = value_of(environment, name);
  while (!rest.empty()) {
    const std::string_view range = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(range.size() + 1, rest.size()));
    const std::size_t dash = range.find('-');
    try {
      const auto low = static_cast<int>(parse_integer(range.substr(0, dash), name, 1, 65'535));
      const auto high = dash == std::string_view::npos
                            ? low
                            : static_cast<int>(parse_integer(range.substr(dash + 1), name, low, 65'535));
      for (int port = low; port <= high && ports.size() < kMost; ++port) ports.push_back(port);
    } catch (const Error& error) {
      throw Error(Errc::kHostfile, error.what());
    }
  }
  return ports;
}

}  // namespace

std::optional<SlurmTask> read_slurm_task(const Environment& environment) {
  if (!is_in_slurm_step(environment) || !value_of(environment, "RUNJOB_RENDEZVOUS").empty()) return std::nullopt;
  if (value_of(environment, "SLURM_PROCID").empty() || value_of(environment, "SLURM_STEP_NUM_TASKS").empty())
    return std::nullopt;
  SlurmTask task;
  task.size = number_in(environment, "SLURM_STEP_NUM_TASKS", 1, kMaxRanks);
  if (task.size == 1) return std::nullopt;
  task.rank = number_in(environment, "SLURM_PROCID", 0, task.size - 1);
  const std::vector<std::string> nodes =
      parse_slurm_hostlist(value_of(environment, "SLURM_STEP_NODELIST"), "SLURM_STEP_NODELIST");
  task.node = number_in(environment, "SLURM_NODEID", 0, static_cast<int>(nodes.size()) - 1);
  task.node_name = nodes.at(static_cast<std::size_t>(task.node));
  task.first_node = nodes.front();
  task.step = fmt::format("{}.{}", value_of(environment, "SLURM_JOB_ID"), value_of(environment, "SLURM_STEP_ID"));
  task.reserved_ports = ports_in(environment, "SLURM_STEP_RESV_PORTS");
  if (!value_of(environment, "PMI_FD").empty()) task.pmi_descriptor = number_in(environment, "PMI_FD", 0, 1 << 20);
  const std::string_view name_space = value_of(environment, "PMIX_NAMESPACE");
  if (name_space.starts_with("slurm.pmix.")) task.pmix_namespace = name_space;  // and not another launcher's
  return task;
}

}  // namespace runjob
