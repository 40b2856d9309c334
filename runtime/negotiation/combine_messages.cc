#include "runtime/negotiation/combine_messages.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "runtime/collectives/copy_bytes.hpp"

namespace runjob::runtime {
namespace {

using Inputs = std::vector<std::span<const std::byte>>;

/// Reduces `count` elements of each input, from the element `first` on.
void reduce(const Rounds& rounds, const Call& call, MessageInputs& inputs, std::size_t first, std::size_t count) {
  const std::size_t offset = first * size_of(call.dtype);
  inputs.pointers.resize(inputs.by_rank.size());
  for (std::size_t rank = 0; rank < inputs.by_rank.size(); ++rank)
    inputs.pointers[rank] = inputs.by_rank[rank].data() + offset;
  rounds.reduce(call, inputs.pointers, count);
}

void copy(std::byte*& to, const std::byte* from, std::size_t bytes) {
  copy_bytes(to, from, bytes);
  to += bytes;
}

/// Copies the rows that each rank has for this one; `rows[s * size + r]`: how many rows s has for r.
void pick(const Call& call, const std::vector<std::int64_t>& rows, std::size_t rank, const Inputs& inputs) {
  auto* to = static_cast<std::byte*>(call.output);
  const std::size_t size = inputs.size();
  for (std::size_t sender = 0; sender < size; ++sender) {
    const auto first = rows.begin() + static_cast<std::ptrdiff_t>(sender * size);
    const std::int64_t all = std::accumulate(first, first + static_cast<std::ptrdiff_t>(size), std::int64_t{0});
    const std::int64_t before = std::accumulate(first, first + static_cast<std::ptrdiff_t>(rank), std::int64_t{0});
    const std::size_t row_bytes = all == 0 ? 0 : inputs[sender].size() / static_cast<std::size_t>(all);
    copy(to, inputs[sender].data() + static_cast<std::size_t>(before) * row_bytes,
         call.counts[sender] * size_of(call.dtype));
  }
}

/// The part of this rank's input that no other rank needs.
Rounds::Part unread_part(const Signature& signature, int rank, int size) {
  if (signature.kind != Kind::kAlltoall && signature.kind != Kind::kReducescatter) return {};
  std::int64_t before = 0, own = 0;
  for (int peer = 0; peer <= rank; ++peer) {
    before += own;
    own = signature.kind == Kind::kAlltoall ? signature.splits[static_cast<std::size_t>(peer)]
                                            : scattered_rows(signature.shape.front(), peer, size);
  }
  const auto row = static_cast<std::size_t>(row_elements(signature.shape)) * size_of(signature.dtype);
  return {static_cast<std::size_t>(before) * row, static_cast<std::size_t>(own) * row};
}

}  // namespace

void combine_messages(const Rounds& rounds, const Call& call, const Decision& decision, int rank,
                      MessageInputs& messages) {
  const Inputs& inputs = messages.by_rank;
  const auto own = static_cast<std::size_t>(rank);
  switch (call.kind) {
    case Kind::kAllreduce:
      return reduce(rounds, call, messages, 0, call.count);
    case Kind::kReducescatter:
      return reduce(
          rounds, call, messages,
          std::accumulate(call.counts.begin(), call.counts.begin() + static_cast<std::ptrdiff_t>(own), std::size_t{0}),
          call.counts[own]);
    case Kind::kBroadcast:
      if (rank != call.root)
        copy_bytes(call.output, inputs[static_cast<std::size_t>(call.root)].data(),
                   inputs[static_cast<std::size_t>(call.root)].size());
      return;
    case Kind::kAllgather: {
      auto* to = static_cast<std::byte*>(call.output);
      for (const auto& input : inputs) copy(to, input.data(), input.size());
      return;
    }
    case Kind::kAlltoall:
      return pick(call, decision.first_extents, own, inputs);
    case Kind::kBarrier:
    case Kind::kJoin:
      return;
  }
}

OwnMessage own_message_of(const Signature& signature, int rank, int size) {
  const bool sends = signature.kind == Kind::kBroadcast ? signature.root == rank : signature.kind != Kind::kBarrier;
  if (!sends || !signature.group.empty()) return {};
  return {static_cast<std::size_t>(element_count(signature.shape)) * size_of(signature.dtype),
          unread_part(signature, rank, size)};
}

std::size_t largest_input(const Signature& signature, const Decision& decision) {
  if (signature.kind == Kind::kBarrier) return 0;
  if (signature.wire || !signature.group.empty() || signature.memory != MemoryKind::kHost) return SIZE_MAX;
  if (signature.op == ReduceOp::kAdasum) return SIZE_MAX;
  const std::vector<std::int64_t>& rows = decision.first_extents;
  if (!has_own_first_extent(signature.kind))
    return static_cast<std::size_t>(element_count(signature.shape)) * size_of(signature.dtype);
  const auto row = row_elements(signature.shape);
  const std::size_t row_bytes = static_cast<std::size_t>(row) * size_of(signature.dtype);
  std::int64_t most = *std::max_element(rows.begin(), rows.end());
  if (signature.kind == Kind::kAlltoall) {
    const auto size = static_cast<std::ptrdiff_t>(signature.splits.size());
    for (auto first = rows.begin(); first != rows.end(); first += size)
      most = std::max(most, std::accumulate(first, first + size, std::int64_t{0}));
  }
  return static_cast<std::size_t>(most) * row_bytes;
}

}  // namespace runjob::runtime
