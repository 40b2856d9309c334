#pragma once

#include <span>
#include <vector>

#include "runtime/collectives/backend.hpp"
#include "runtime/engine/control_message.hpp"

namespace runjob::runtime {

/// What combine_messages() reads; kept from one operation to the next, so that none takes memory.
struct MessageInputs {
  /// All of each rank's input, not aligned; a broadcast needs its root's only. They overlap no output, but this rank's may be it.
  std::vector<std::span<const std::byte>> by_rank;
  std::vector<const void*> pointers;  ///< room for those that are reduced
};

/// The result of a small collective, from all ranks' inputs, as rank `rank` computes it into `call.output`.
/// `rounds`: whose messages they are, for how they are reduced.
void combine_messages(const Rounds& rounds, const Call& call, const Decision& decision, int rank,
                      MessageInputs& messages);

/// A rank's input as its message: so many bytes of it, of which no other rank reads the part `unread`. Not of a grouped operation.
struct OwnMessage {
  std::size_t bytes = 0;
  Rounds::Part unread = {};
};
OwnMessage own_message_of(const Signature& signature, int rank, int size);

/// Bytes of the largest input that any rank sends for it. SIZE_MAX when it cannot be in the messages, however small: a group is
/// several inputs, and what is compressed must be rounded alike whenever it is run.
std::size_t largest_input(const Signature& signature, const Decision& decision);

}  // namespace runjob::runtime
