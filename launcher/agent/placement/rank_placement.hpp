#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launcher/channel/messages.hpp"

namespace runjob {

/// A rank's share of its host. An empty field sets nothing.
struct RankPlacement {
  std::vector<int> cpus;          ///< numbers of the CPUs that it may run on
  std::string visible_gpus;       ///< value of CUDA_VISIBLE_DEVICES
  std::vector<std::string> gpus;  ///< those that it uses, for people
};

/// The placement of each of the launch's ranks, in their order. Inspects the host only as far as the launch requires.
/// A rank uses its share of the GPUs with `gpus_per_rank`; without it, one of those that it sees: the one with the
/// number of its local rank, beginning again at the first one when all are taken. `root`: a folder that has `proc` and
/// `sys`, for tests.
/// Errors  Error(kUnavailable) naming what the host has too few of, or the GPU that it has not.
std::vector<RankPlacement> place_ranks(const Launch& launch, const Environment& agent, const std::string& root = "");

}  // namespace runjob
