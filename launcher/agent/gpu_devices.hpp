#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace runjob {

/// The GPUs that this host lets its ranks use, as CUDA_VISIBLE_DEVICES names them: what the agent's own environment says (a
/// batch system's choice), else as many as the driver shows, numbered from 0.
/// Source  NVIDIA's driver, /proc/driver/nvidia/gpus: one folder for each; CUDA's programming guide for the variable.
/// `driver`: that folder, for tests.
std::vector<std::string> usable_gpus(const Environment& agent, const std::string& driver = "/proc/driver/nvidia/gpus");

}  // namespace runjob
