#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace runjob {

/// The GPUs that the ranks may use on this host, as CUDA_VISIBLE_DEVICES names them. The agent's own
/// CUDA_VISIBLE_DEVICES comes first, which a batch system may have set; otherwise it is all GPUs of the driver,
/// numbered from 0.
/// Source  NVIDIA's driver, /proc/driver/nvidia/gpus: one folder for each; CUDA's programming guide for the variable.
///         `driver` is that folder, for tests.
std::vector<std::string> usable_gpus(const Environment& agent, const std::string& driver = "/proc/driver/nvidia/gpus");

}  // namespace runjob
