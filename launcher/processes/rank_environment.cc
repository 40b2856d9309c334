#include "launcher/processes/rank_environment.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/binding/gpu_choice.hpp"

namespace runjob {
namespace {

/// True if `name` is in `patterns`. A pattern that ends in '*' stands for every name with this beginning.
template <std::size_t size>
bool matches(std::string_view name, const std::array<std::string_view, size>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [name](std::string_view pattern) {
    return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
  });
}

constexpr std::array<std::string_view, 13> kOfHost = {"HOME",    "PWD",         "OLDPWD", "HOSTNAME", "TMPDIR",
                                                      "XDG_*",   "SSH_*",       "USER",   "LOGNAME",  "SHELL",
                                                      "DISPLAY", "BASH_FUNC_*", "MAIL"};

constexpr std::array<std::string_view, 42> kOfOuterLauncher = {
    // torch.distributed, and Lightning's name for GROUP_RANK
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
    "ROLE_WORLD_SIZE", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_*", "NODE_RANK",
    // MPI and process managers
    "OMPI_*", "PMI_*", "PMIX_*", "PRTE_*", "PMI*", "HYDI_*", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_*",
    // SLURM: a task's, not the allocation's
    "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_TASK_PID", "SLURM_GTIDS",
    // PBS and LSF, likewise
    "PBS_TASKNUM", "PBS_NODENUM", "PBS_VNODENUM", "LSF_PM_TASKID",
    // Horovod and ourselves
    "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_*", "HOROVOD_CROSS_*", "HOROVOD_HOSTNAME",
    "HOROVOD_GLOO_RENDEZVOUS_*", "RUNJOB_RENDEZVOUS", "RUNJOB_JOB_*", "RUNJOB_GENERATION", "RUNJOB_ADDRESS",
    "RUNJOB_NETWORK_VARIABLES"};

/// Two of them name files that a launcher itself writes: the launcher of an inner job would write over them.
constexpr std::array<std::string_view, 11> kOfOuterRunjob = {"RUNJOB_RANK",
                                                             "RUNJOB_SIZE",
                                                             "RUNJOB_LOCAL_*",
                                                             "RUNJOB_CROSS_*",
                                                             "RUNJOB_HOSTNAME",
                                                             "RUNJOB_ELASTIC",
                                                             "HOROVOD_ELASTIC",
                                                             "RUNJOB_PROCESS_NUMBER",
                                                             "RUNJOB_OUTPUT_FILENAME",
                                                             "RUNJOB_STATUS_FILE",
                                                             "RUNJOB_TORCH_BACKEND_PID"};

/// Names of what network_variables() has given to the rank in which this launcher runs, separated by commas.
constexpr const char* kGiven = "RUNJOB_NETWORK_VARIABLES";

/// True if `names`, a list separated by commas, has `name`.
bool lists(std::string_view names, std::string_view name) {
  return fmt::format(",{},", names).find(fmt::format(",{},", name)) != std::string::npos;
}

bool of_host(std::string_view name) {
  return matches(name, kOfHost) || chooses_gpus(name);
}

bool of_outer_launcher(std::string_view name) {
  return matches(name, kOfOuterLauncher) || matches(name, kOfOuterRunjob);
}

/// What torchrun gives its workers. TORCHELASTIC_USE_AGENT_STORE is not among them: with it the ranks would wait for a
/// store of torchrun's agent.
Environment torchrun_variables(const Allocation& allocation, const Placement& placement, const JobVariables& job) {
  const std::string group_rank = std::to_string(placement.host);
  const std::string rank = std::to_string(placement.rank), size = std::to_string(placement.size);
  Environment result = {{"RANK", rank},
                        {"WORLD_SIZE", size},
                        {"LOCAL_RANK", std::to_string(placement.local_rank)},
                        {"LOCAL_WORLD_SIZE", std::to_string(placement.local_size)},
                        {"GROUP_RANK", group_rank},
                        {"GROUP_WORLD_SIZE", std::to_string(allocation.hosts.size())},
                        {"NODE_RANK", group_rank},  // Lightning's
                        {"ROLE_NAME", "default"},
                        {"ROLE_RANK", rank},
                        {"ROLE_WORLD_SIZE", size},
                        {"MASTER_ADDR", job.master_address},
                        {"TORCHELASTIC_RUN_ID", job.job_id},
                        {"TORCHELASTIC_RESTART_COUNT", std::to_string(job.generation)},
                        {"TORCHELASTIC_MAX_RESTARTS", std::to_string(job.most_generations)}};
  if (job.master_port != 0) result["MASTER_PORT"] = std::to_string(job.master_port);
  return result;
}

}  // namespace

Environment forwarded_environment(const Environment& launcher) {
  const auto found = launcher.find(kGiven);
  const std::string given = found == launcher.end() ? "" : found->second;
  const bool inside_a_job = is_inside_a_job(launcher);
  Environment result;
  for (const auto& [name, value] : launcher) {
    if (inside_a_job && names_files_of_job(name)) continue;
    if (!of_host(name) && !of_outer_launcher(name) && !lists(given, name)) result.emplace(name, value);
  }
  return result;
}

Environment host_environment(const Environment& agent) {
  Environment result;
  for (const auto& [name, value] : agent) {
    if (of_host(name)) result.emplace(name, value);
  }
  return result;
}

Environment rank_variables(const Allocation& allocation, const Placement& placement, const JobVariables& job) {
  const std::string hostname = allocation.hosts.at(static_cast<std::size_t>(placement.host)).name;
  Environment result;
  for (const std::string prefix : {"RUNJOB_", "HOROVOD_"}) {
    result[prefix + "RANK"] = std::to_string(placement.rank);
    result[prefix + "SIZE"] = std::to_string(placement.size);
    result[prefix + "LOCAL_RANK"] = std::to_string(placement.local_rank);
    result[prefix + "LOCAL_SIZE"] = std::to_string(placement.local_size);
    result[prefix + "CROSS_RANK"] = std::to_string(placement.cross_rank);
    result[prefix + "CROSS_SIZE"] = std::to_string(placement.cross_size);
    result[prefix + "HOSTNAME"] = hostname;
  }
  result["RUNJOB_JOB_ID"] = job.job_id;
  result["RUNJOB_GENERATION"] = std::to_string(job.generation);
  result.merge(torchrun_variables(allocation, placement, job));
  return result;
}

Environment network_variables(const HostAddress& host, const Environment& set) {
  Environment result;
  if (!host.interface.empty()) {
    result["GLOO_SOCKET_IFNAME"] = host.interface;
    result["TP_SOCKET_IFNAME"] = host.interface;
    // With "=", since NCCL otherwise takes the word for the beginning of a name.
    result["NCCL_SOCKET_IFNAME"] = fmt::format("={}", fmt::join(host.interfaces, ","));
    if (host.ipv6) result["NCCL_SOCKET_FAMILY"] = "AF_INET6";
  }
  std::erase_if(result, [&set](const auto& variable) { return set.count(variable.first) != 0; });
  std::string given;
  for (const auto& [name, value] : result) given += (given.empty() ? "" : ",") + name;
  if (!given.empty()) result[kGiven] = given;
  result["RUNJOB_ADDRESS"] = host.address;
  return result;
}

int threads_per_rank(int cores, int local_size) {
  return std::max(1, cores / std::max(1, local_size));
}

Environment rank_defaults(int cores, int local_size, int free_port) {
  Environment result = {{"PYTHONUNBUFFERED", "1"},
                        {"PYTHONFAULTHANDLER", "1"},
                        {"NCCL_RAS_ENABLE", "0"},       // from 2.24 on it listens on port 28028 otherwise
                        {"NCCL_RUNTIME_CONNECT", "0"},  // else it connects in a launch, which cannot be ended
                        {"OMP_NUM_THREADS", std::to_string(threads_per_rank(cores, local_size))}};
  if (free_port != 0) result["MASTER_PORT"] = std::to_string(free_port);
  return result;
}

}  // namespace runjob
