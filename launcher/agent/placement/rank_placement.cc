#include "launcher/agent/placement/rank_placement.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/agent/placement/cpu_binding.hpp"
#include "launcher/agent/placement/cpu_topology.hpp"
#include "launcher/binding/gpu_choice.hpp"
#include "launcher/binding/gpu_devices.hpp"
#include "launcher/binding/gpu_share.hpp"

namespace runjob {
namespace {

/// The GPUs of one rank: the names in `visible`, which it alone sees, or the one of them that its local rank chooses.
/// A device that is not found is an error where the rank `must` have one.
std::vector<const GpuDevice*> gpus_of(const LaunchProcess& process, const std::vector<GpuDevice>& devices,
                                      const std::vector<std::string>& visible, bool is_share, bool must) {
  std::vector<std::string> names = visible;
  if (!is_share && !visible.empty())
    names = {visible[static_cast<std::size_t>(process.place.local_rank) % visible.size()]};
  if (names.empty() && must)
    throw Error(Errc::kUnavailable,
                fmt::format("rank {} cannot be bound to the cores near its GPU: {}", process.number, kNoGpu));
  std::vector<const GpuDevice*> result;
  for (const std::string& name : names) {
    const GpuDevice* const device = find_gpu(devices, name);
    if (device != nullptr) result.push_back(device);
    if (device == nullptr && must)
      throw Error(Errc::kUnavailable,
                  fmt::format("rank {} cannot be bound to the cores near its GPU {}: the driver "
                              "shows {} GPU{} here, and none is that one",
                              process.number, name, devices.size(), devices.size() == 1 ? "" : "s"));
  }
  return result;
}

/// Those of `usable` that are near one of the GPUs. A GPU whose near CPUs are not known is near all.
std::vector<int> near_cpus(int rank, const std::vector<const GpuDevice*>& gpus, const std::vector<int>& usable) {
  std::vector<int> result;
  std::string texts;
  for (const GpuDevice* gpu : gpus) {
    const std::vector<int> near = gpu->near_cpus.empty() ? usable : parse_cpu_list(gpu->near_cpus);
    std::set_intersection(near.begin(), near.end(), usable.begin(), usable.end(), std::back_inserter(result));
    texts += fmt::format("{}{} is near CPUs {}", texts.empty() ? "" : ", ", gpu_text(*gpu), gpu->near_cpus);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  if (result.empty())
    throw Error(Errc::kUnavailable,
                fmt::format("rank {} cannot be bound to the cores near its GPU: {}, of which none may be used here; "
                            "bind to none",
                            rank, texts));
  return result;
}

/// Where each rank's GPUs are wanted: for the user, or for its CPUs.
void place_near_gpus(const Launch& launch, const Environment& agent, const std::string& root,
                     std::vector<RankPlacement>& placements) {
  const bool binds = launch.bind_to == BindTo::kGpu;
  const std::vector<GpuDevice> devices = list_gpu_devices(root);
  const std::vector<int> usable = binds ? affinity() : std::vector<int>();
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const LaunchProcess& process = launch.processes[i];
    Environment own = agent;
    if (placements[i].visible_gpus) choose_gpus(own, *placements[i].visible_gpus);
    const auto gpus = gpus_of(process, devices, usable_gpus(own, root), launch.gpus_per_rank > 0, binds);
    for (const GpuDevice* gpu : gpus) placements[i].gpus.push_back(gpu_text(*gpu));
    if (binds) placements[i].cpus = near_cpus(process.number, gpus, usable);
  }
}

}  // namespace

std::vector<RankPlacement> place_ranks(const Launch& launch, const Environment& agent, const std::string& root) {
  std::vector<RankPlacement> result(launch.processes.size());
  const bool is_elastic = launch.elastic_slots > 0;
  const auto share_of = [&](std::size_t i) {
    return is_elastic ? launch.processes[i].place.local_rank : static_cast<int>(i);
  };
  if (launch.bind_to != BindTo::kNone && launch.bind_to != BindTo::kGpu) {
    const int shares = is_elastic ? launch.elastic_slots : static_cast<int>(launch.processes.size());
    const auto cpus = bind_ranks(usable_cpus(), launch.bind_to, shares, launch.cores_per_rank);
    for (std::size_t i = 0; i < result.size(); ++i) result[i].cpus = cpus.at(static_cast<std::size_t>(share_of(i)));
  }
  std::vector<std::string> gpus;
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i].visible_gpus = chosen_gpus(launch.processes[i].environment);
    if (result[i].visible_gpus || launch.gpus_per_rank == 0) continue;
    if (gpus.empty()) gpus = usable_gpus(agent, root);
    result[i].visible_gpus = gpu_list(gpu_share(gpus, share_of(i), launch.gpus_per_rank));
  }
  if (launch.names_gpus || launch.bind_to == BindTo::kGpu) place_near_gpus(launch, agent, root, result);
  return result;
}

}  // namespace runjob
