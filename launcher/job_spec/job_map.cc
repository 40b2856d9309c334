#include "launcher/job_spec/job_map.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "hostfile/rank_list.hpp"
#include "launcher/binding/gpu_share.hpp"

namespace runjob {
namespace {

const char* plural(std::size_t count) {
  return count == 1 ? "" : "s";
}

std::string policy_text(const MapBy& map_by) {
  switch (map_by.policy) {
    case MapBy::Policy::kSlot:
      return "slot";
    case MapBy::Policy::kNode:
      return "node";
    case MapBy::Policy::kPerNode:
      return fmt::format("ppr:{}:node", map_by.ranks_per_node);
  }
  return "";
}

/// "core", "core (2 each)".
std::string binding_text(const JobSpec& spec) {
  std::string text(to_string(spec.bind_to));
  if (spec.map_by.cores_per_rank > 0) text += fmt::format(" ({} each)", spec.map_by.cores_per_rank);
  return text;
}

/// How a host is reached: "this host", "by srun", "by SSH, port 2222, as me".
std::string way_to(const JobSpec& spec, int index) {
  const auto& local = spec.local_hosts;
  if (std::find(local.begin(), local.end(), index) != local.end()) return "this host";
  if (spec.slurm) return "by srun";
  const Host& host = spec.allocation.hosts.at(static_cast<std::size_t>(index));
  std::string text = "by SSH";
  if (const auto port = host.port ? host.port : spec.ssh.port) text += fmt::format(", port {}", *port);
  if (!host.user.empty()) text += ", as " + host.user;
  return text;
}

std::string rank_line(const JobSpec& spec, const Host& host, const Placement& placement) {
  std::string gpus;
  if (host.gpus) {
    gpus = "GPUs " + visible_gpus(host, placement, spec.gpus_per_rank);
  } else if (spec.gpus_per_rank > 0) {
    const int first = placement.local_rank * spec.gpus_per_rank;
    const int last = first + spec.gpus_per_rank - 1;
    gpus = first == last ? fmt::format("GPU {} of those it finds", first)
                         : fmt::format("GPUs {}-{} of those it finds", first, last);
  }
  return gpus.empty() ? "" : fmt::format("    rank {}: {}\n", placement.rank, gpus);
}

/// A word as a shell would take it.
std::string quoted(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string job_map(const JobSpec& spec) {
  const auto& [hosts, placements] = spec.allocation;
  std::string text =
      fmt::format("{} rank{} on {} host{}, mapped by {}, bound to {}:\n", placements.size(), plural(placements.size()),
                  hosts.size(), plural(hosts.size()), policy_text(spec.map_by), binding_text(spec));
  std::vector<std::vector<int>> ranks(hosts.size());
  std::vector<std::string> details(hosts.size());
  for (const Placement& placement : placements) {
    const auto host = static_cast<std::size_t>(placement.host);
    ranks[host].push_back(placement.rank);
    details[host] += rank_line(spec, hosts[host], placement);
  }
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    text +=
        fmt::format("  {}: {} in {} slot{} ({})\n{}", hosts[i].name, ranks_text(ranks[i]), hosts[i].slots,
                    plural(static_cast<std::size_t>(hosts[i].slots)), way_to(spec, static_cast<int>(i)), details[i]);
  }
  return text;
}

std::string job_plan(const JobSpec& spec) {
  const auto& task = spec.slurm_task;
  std::string text = task ? fmt::format("rank {} of {}, which SLURM has started on {}\nit runs:", task->rank,
                                        task->size, task->node_name)
                          : job_map(spec) + "each runs:";
  for (const std::string& word : spec.command) text += " " + quoted(word);
  text += fmt::format("\nin: {}\n", spec.working_directory);
  for (const auto& [name, value] : spec.environment_overrides)
    text += fmt::format("with: {}={}\n", name, quoted(value));
  return text;
}

}  // namespace runjob
