#include "hostfile/slurm_allocation.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "hostfile/merge_hosts.hpp"
#include "hostfile/slurm_hostlist.hpp"

namespace runjob {
namespace {

/// The newer of two names that is set, and its value.
struct Variable {
  std::string_view name;
  std::string_view value;
};

Variable first_of(const Environment& environment, std::string_view name, std::string_view older_name) {
  const std::string_view value = value_of(environment, name);
  if (!value.empty()) return {name, value};
  return {older_name, value_of(environment, older_name)};
}

int number_in(const Variable& variable, int low, int high) {
  try {
    return static_cast<int>(parse_integer(variable.value, variable.name, low, high));
  } catch (const Error& error) {
    throw Error(Errc::kHostfile, error.what());
  }
}

std::vector<int> slots_from_cpus(const Environment& environment) {
  const Variable cpus{"SLURM_JOB_CPUS_PER_NODE", value_of(environment, "SLURM_JOB_CPUS_PER_NODE")};
  if (cpus.value.empty()) return {};
  const Variable per_task{"SLURM_CPUS_PER_TASK", value_of(environment, "SLURM_CPUS_PER_TASK")};
  const int divisor = per_task.value.empty() ? 1 : number_in(per_task, 1, kMaxSlots);
  std::vector<int> slots = parse_slurm_counts(cpus.value, cpus.name);
  for (int& count : slots) count = std::max(1, count / divisor);
  return slots;
}

/// The number for each node; one each when SLURM does not give it.
std::vector<int> slots_of_nodes(const Environment& environment, std::size_t nodes) {
  const std::string_view tasks = value_of(environment, "SLURM_TASKS_PER_NODE");
  const bool in_step = is_in_slurm_step(environment);
  std::vector<int> slots;
  if (!in_step && !tasks.empty()) slots = parse_slurm_counts(tasks, "SLURM_TASKS_PER_NODE");
  if (slots.empty()) slots = slots_from_cpus(environment);
  if (slots.empty()) slots.assign(nodes, 1);
  if (slots.size() != nodes)
    throw Error(Errc::kHostfile,
                fmt::format("{} has numbers for {} nodes, SLURM_JOB_NODELIST names {}; name the hosts with -H instead",
                            in_step ? "SLURM_JOB_CPUS_PER_NODE" : "SLURM_TASKS_PER_NODE", slots.size(), nodes));
  return slots;
}

}  // namespace

bool is_in_slurm_step(const Environment& environment) {
  // Source: Slurm, slurm/slurm.h, SLURM_MAX_NORMAL_STEP_ID. Larger numbers are those of the batch script, of salloc's
  // shell and of other steps of SLURM's own.
  constexpr std::int64_t kMaxNormalStep = 0xffff'fff0;
  const std::string_view step = value_of(environment, "SLURM_STEP_ID");
  if (step.empty() || step.find_first_not_of("0123456789") != std::string_view::npos || step.size() > 10) return false;
  return parse_integer(step, "SLURM_STEP_ID", 0, 9'999'999'999) < kMaxNormalStep;
}

std::optional<SlurmAllocation> read_slurm_allocation(const Environment& environment) {
  const Variable id = first_of(environment, "SLURM_JOB_ID", "SLURM_JOBID");
  const Variable list = first_of(environment, "SLURM_JOB_NODELIST", "SLURM_NODELIST");
  if (id.value.empty() || list.value.empty()) return std::nullopt;
  SlurmAllocation allocation;
  allocation.job_id = id.value;
  const std::vector<std::string> names = parse_slurm_hostlist(list.value, list.name);
  allocation.nodes = static_cast<int>(names.size());
  const std::vector<int> slots = slots_of_nodes(environment, names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (slots[i] == 0) continue;
    Host& host = allocation.hosts.emplace_back();
    host.name = names[i];
    host.slots = slots[i];
  }
  if (allocation.hosts.empty())
    throw Error(Errc::kHostfile, "SLURM_TASKS_PER_NODE: no node has a task; ask SLURM for some with --ntasks");
  return allocation;
}

}  // namespace runjob
