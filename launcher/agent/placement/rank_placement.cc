#include "launcher/agent/placement/rank_placement.hpp"

#include "launcher/agent/placement/cpu_binding.hpp"
#include "launcher/agent/placement/cpu_topology.hpp"
#include "launcher/binding/gpu_devices.hpp"
#include "launcher/binding/gpu_share.hpp"

namespace runjob {

std::vector<RankPlacement> place_ranks(const Launch& launch, const Environment& agent) {
  std::vector<RankPlacement> result(launch.ranks.size());
  const bool is_elastic = launch.elastic_slots > 0;
  const auto share_of = [&](std::size_t i) {
    return is_elastic ? launch.ranks[i].place.local_rank : static_cast<int>(i);
  };
  if (launch.bind_to != BindTo::kNone) {
    const int shares = is_elastic ? launch.elastic_slots : static_cast<int>(launch.ranks.size());
    const auto cpus = bind_ranks(usable_cpus(), launch.bind_to, shares, launch.cores_per_rank);
    for (std::size_t i = 0; i < result.size(); ++i) result[i].cpus = cpus.at(static_cast<std::size_t>(share_of(i)));
  }
  if (launch.gpus_per_rank > 0) {
    const std::vector<std::string> gpus = usable_gpus(agent);
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i].visible_gpus = gpu_list(gpu_share(gpus, share_of(i), launch.gpus_per_rank));
  }
  return result;
}

}  // namespace runjob
