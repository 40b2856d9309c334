#pragma once

#include <span>
#include <vector>

#include "runtime/collectives/backend.hpp"
#include "runtime/negotiation/control_message.hpp"

namespace runjob::runtime {

/// The inputs of combine_messages(); kept from one operation to the next, so that no operation allocates memory.
struct MessageInputs {
  /// The whole input of each rank, not aligned; a broadcast needs that of its root alone. They overlap no output,
  /// except that the input of this rank may be its output.
  std::vector<std::span<const std::byte>> by_rank;
  std::vector<const void*> pointers;  ///< room for the operands of a reduction
};

/// Computes the result of a small collective on rank `rank`, from the inputs of all ranks, into `call.output`.
/// `rounds`: the rounds of the messages, which reduce them.
void combine_messages(const Rounds& rounds, const Call& call, const Decision& decision, int rank,
                      MessageInputs& messages);

/// A rank's input as its message: the number of its bytes, and the part `unread` that no other rank reads. Nothing for
/// a grouped operation.
struct OwnMessage {
  std::size_t bytes = 0;
  Rounds::Part unread = {};
};
OwnMessage own_message_of(const Signature& signature, int rank, int size);

/// Bytes of the largest input that any rank sends for the operation. SIZE_MAX when its inputs cannot be in the
/// messages, however small: a group has several, and compressed values must be rounded alike whenever they are reduced.
std::size_t largest_input(const Signature& signature, const Decision& decision);

}  // namespace runjob::runtime
