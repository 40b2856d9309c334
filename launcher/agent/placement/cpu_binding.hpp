#pragma once

#include <vector>

#include "launcher/agent/placement/cpu_topology.hpp"
#include "launcher/binding/bind_to.hpp"

namespace runjob {

/// The numbers of the CPUs of each of a host's `ranks`, by local rank; empty lists with kNone. Units (cores, NUMA
/// nodes, sockets) are shared out in order: each rank gets as many as any other, or one more. When ranks are more than
/// NUMA nodes or sockets, neighbours share one. Pure. `cpus`: as usable_cpus() sorts them. `cores_per_rank`: with kCore
/// and kSharedCore each rank gets this number of cores instead of its share; 0 = its share. With kSharedCore the ranks
/// begin again at the first core when all cores are taken.
/// Errors  Error(kUnavailable) when there are fewer cores than the ranks need.
std::vector<std::vector<int>> bind_ranks(const std::vector<Cpu>& cpus, BindTo bind_to, int ranks,
                                         int cores_per_rank = 0);

}  // namespace runjob
