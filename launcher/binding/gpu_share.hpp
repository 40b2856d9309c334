#pragma once

#include <string>
#include <vector>

#include "hostfile/allocation.hpp"

namespace runjob {

/// The variable that leaves a process some of its host's GPUs, by numbers or UUIDs. Source  CUDA's programming guide.
inline constexpr char kVisibleGpus[] = "CUDA_VISIBLE_DEVICES";

/// The GPUs of one rank among its host's: `per_rank` of them, in order of local ranks. GPUs are named as in
/// CUDA_VISIBLE_DEVICES: by numbers or UUIDs.
/// Errors  Error(kUnavailable) when there are too few.
std::vector<std::string> gpu_share(const std::vector<std::string>& gpus, int local_rank, int per_rank);

/// The value of CUDA_VISIBLE_DEVICES for these GPUs.
std::string gpu_list(const std::vector<std::string>& gpus);

/// The GPUs of a host list's gpus= for one rank: its share with `per_rank`, or all of them if that is 0; "" if the host
/// has no gpus=.
/// Errors  as gpu_share().
std::string visible_gpus(const Host& host, const Placement& placement, int per_rank);

}  // namespace runjob
