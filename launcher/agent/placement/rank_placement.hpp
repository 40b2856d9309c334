#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launcher/channel/messages.hpp"

namespace runjob {

/// A rank's share of its host. An empty field sets nothing.
struct RankPlacement {
  std::vector<int> cpus;     ///< numbers of the CPUs that it may run on
  std::string visible_gpus;  ///< value of CUDA_VISIBLE_DEVICES
};

/// The placement of each of the launch's ranks, in their order. Inspects the host only as far as the launch requires.
/// Errors  Error(kUnavailable) naming what the host has too few of.
std::vector<RankPlacement> place_ranks(const Launch& launch, const Environment& agent);

}  // namespace runjob
