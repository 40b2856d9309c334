#pragma once

#include <string>
#include <vector>

#include "hostfile/allocation.hpp"

namespace runjob {

/// The GPUs of one rank among its host's: `per_rank` of them, in order of local ranks. GPUs are as CUDA_VISIBLE_DEVICES names
/// them: numbers or UUIDs. Errors  Error(kUnavailable) when there are too few.
std::vector<std::string> gpu_share(const std::vector<std::string>& gpus, int local_rank, int per_rank);

/// A value for CUDA_VISIBLE_DEVICES.
std::string gpu_list(const std::vector<std::string>& gpus);

/// What a host list's gpus= means for a rank: its share with `per_rank`, else (0) all of them; "" when the host has none.
/// Errors  as gpu_share().
std::string visible_gpus(const Host& host, const Placement& placement, int per_rank);

}  // namespace runjob
