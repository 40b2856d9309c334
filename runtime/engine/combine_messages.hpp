#pragma once

#include <span>
#include <vector>

#include "runtime/collectives/backend.hpp"
#include "runtime/engine/control_message.hpp"

namespace runjob::runtime {

/// The result of a small collective, from all ranks' inputs, as rank `rank` computes it into `call.output`.
/// `inputs`: by rank, all of each rank's input, not aligned; a broadcast needs its root's only. They overlap no output.
void combine_messages(const Call& call, const Decision& decision, int rank,
                      const std::vector<std::span<const std::byte>>& inputs);

/// Bytes of the largest input that any rank sends for it.
std::size_t largest_input(const Signature& signature, const Decision& decision);

}  // namespace runjob::runtime
