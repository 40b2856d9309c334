#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launcher/messages.hpp"

namespace runjob {

/// What a rank gets of its host. Empty: nothing in particular.
struct RankPlacement {
  std::vector<int> cpus;     ///< numbers of those it may run on
  std::string visible_gpus;  ///< for CUDA_VISIBLE_DEVICES
};

/// For each of the launch's ranks, in their order. Looks at the host only as far as the launch asks for it.
/// Errors  Error(kUnavailable) saying what the host has too few of.
std::vector<RankPlacement> place_ranks(const Launch& launch, const Environment& agent);

}  // namespace runjob
