#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launcher/channel/messages.hpp"

namespace runjob {

/// A rank's share of its host.
struct RankPlacement {
  std::vector<int> cpus;  ///< numbers of the CPUs that it may run on; empty: it keeps the agent's affinity
  /// The GPUs that it sees: those that the launcher has chosen for it, else its share. Nothing: those of the agent.
  std::optional<std::string> visible_gpus;
  std::vector<std::string> gpus;  ///< those that it uses, for people; empty unless the launch needs them
};

/// The placement of each of the launch's ranks, in their order. Inspects the host only as far as the launch requires.
/// A rank uses its share of the GPUs with `gpus_per_rank`; without it, one of those that it sees: the one with the
/// number of its local rank, beginning again at the first one when all are taken. `root`: a folder that has `proc` and
/// `sys`, for tests.
/// Errors  Error(kUnavailable): the host has too few cores or GPUs, which the text names; or a rank is to be bound near
///         a GPU that the host does not show, or near whose CPUs it may not run.
std::vector<RankPlacement> place_ranks(const Launch& launch, const Environment& agent, const std::string& root = "");

}  // namespace runjob
