#pragma once

#include <string>
#include <vector>

#include "hostfile/allocation.hpp"

namespace runjob {

/// The GPUs of one rank among its host's: `per_rank` of them, in order of local ranks. GPUs are named as in
/// gpu_choice.hpp: by numbers or UUIDs.
/// Errors  Error(kUnavailable) when there are too few.
std::vector<std::string> gpu_share(const std::vector<std::string>& gpus, int local_rank, int per_rank);

/// The list of these GPUs, for choose_gpus().
std::string gpu_list(const std::vector<std::string>& gpus);

/// The GPUs of a host list's gpus= for one rank: its share with `per_rank`, or all of them if that is 0; "" if the host
/// has no gpus=.
/// Errors  as gpu_share().
std::string visible_gpus(const Host& host, const Placement& placement, int per_rank);

}  // namespace runjob
