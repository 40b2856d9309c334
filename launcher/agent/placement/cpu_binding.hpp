#pragma once

#include <vector>

#include "launcher/agent/placement/cpu_topology.hpp"
#include "launcher/binding/bind_to.hpp"

namespace runjob {

/// The numbers of the CPUs of each of a host's `ranks`, by local rank and ascending; empty lists with kNone, and when
/// `cpus` is empty. Units (cores, NUMA nodes, sockets) are shared out in order: each rank gets as many as any other, or
/// one more. When there are more ranks than units, neighbours share one; with kCore this is an error instead. Pure.
///
/// `cpus`            as usable_cpus() sorts them
/// `bind_to`         not kGpu, which place_ranks() does
/// `cores_per_rank`  with kCore and kSharedCore, the number of cores that each rank gets instead of its share; 0 = its
///                   share. With kSharedCore the ranks begin again at the first core when all cores are taken.
/// Errors            Error(kUnavailable) when there are fewer cores than the ranks need.
std::vector<std::vector<int>> bind_ranks(const std::vector<Cpu>& cpus, BindTo bind_to, int ranks,
                                         int cores_per_rank = 0);

}  // namespace runjob
