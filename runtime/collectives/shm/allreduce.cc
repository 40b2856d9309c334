#include "runtime/collectives/shm/allreduce.hpp"

#include <cstring>
#include <vector>

#include "runtime/collectives/rank_order_reduction.hpp"
#include "runtime/collectives/shm/direct_allreduce.hpp"
#include "runtime/collectives/shm/pieces.hpp"
#include "runtime/collectives/shm/stage.hpp"
#include "runtime/collectives/shm/streaming_copy.hpp"

namespace runjob::runtime {
namespace {

/// Pieces this small still pay for the steps they need; with fewer than four of them nothing overlaps.
constexpr std::size_t kLeastPieceBytes = 32u << 10;
constexpr std::size_t kWantedPieces = 4;

/// A result so large will have left the cache before somebody reads it.
constexpr std::size_t kLeastStreamedBytes = 16u << 20;

RankOrderReduction reduction_of(const Call& call, int size) {
  return {call.dtype, call.op, call.prescale, call.postscale, size};
}

void reduce_all(Channels& channels, const Call& call) {
  const int size = channels.group.size();
  const std::size_t bytes = call.count * size_of(call.dtype);
  std::memcpy(channels.small.begin(bytes), call.input, bytes);
  channels.small.give();
  std::vector<const void*> inputs;
  for (int rank = 0; rank < size; ++rank) inputs.push_back(channels.small.take(rank, bytes));
  reduction_of(call, size).run(call.output, inputs, call.count);
}

class Pipeline {
 public:
  Pipeline(Ring& ring, const Call& call)
      : ring_(ring),
        element_(size_of(call.dtype)),
        bytes_(call.count * element_),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        reduction_(reduction_of(call, ring.size())),
        pieces_(call.count, piece_bytes(bytes_, kWantedPieces, kLeastPieceBytes, ring.slot_bytes()) / element_),
        first_step_(ring.take_steps(pieces_.number())),
        inputs_(static_cast<std::size_t>(ring.size())) {}

  void run() {
    const std::size_t count = pieces_.number();
    for (std::size_t i = 0; i < count + 2; ++i) {
      if (i < count) contribute(i);
      if (i >= 1 && i - 1 < count) reduce(i - 1);
      if (i >= 2) collect(i - 2);
    }
  }

 private:
  /// Where in the buffers rank `rank`'s part of `piece` is; in a slot it is at the same place of the piece.
  Range part(const Range& piece, int rank) const { return part_of(piece.count, element_, rank, ring_.size()); }
  std::byte* in_slot(int rank, std::size_t i, std::size_t element) const {
    return ring_.slot(rank, first_step_ + i) + element * element_;
  }

  /// Copies what the other ranks reduce into this rank's slot: all of the piece but its own part.
  void contribute(std::size_t i) {
    ring_.wait_free(first_step_ + i);
    const Range piece = pieces_[i], own = part(piece, ring_.rank());
    const std::byte* source = input_ + piece.first * element_;
    const std::size_t after = own.first + own.count;
    std::memcpy(in_slot(ring_.rank(), i, 0), source, own.first * element_);
    std::memcpy(in_slot(ring_.rank(), i, after), source + after * element_, (piece.count - after) * element_);
    ring_.filled(first_step_ + i);
  }

  /// Reduces this rank's part into its own slot, where the others find it, and copies it to the output.
  void reduce(std::size_t i) {
    const Range piece = pieces_[i], own = part(piece, ring_.rank());
    const std::size_t offset = (piece.first + own.first) * element_;
    for (int peer = 0; peer < ring_.size(); ++peer) {
      if (peer != ring_.rank()) ring_.wait_filled(peer, first_step_ + i);
      inputs_[static_cast<std::size_t>(peer)] = peer == ring_.rank() ? input_ + offset : in_slot(peer, i, own.first);
    }
    std::byte* result = in_slot(ring_.rank(), i, own.first);
    reduction_.run(result, inputs_, own.count);
    ring_.reduced(first_step_ + i);
    copy_out(offset, result, own.count);
  }

  /// Copies what the others have reduced to the output, beginning with the next rank: not all at one.
  void collect(std::size_t i) {
    const Range piece = pieces_[i];
    for (int distance = 1; distance < ring_.size(); ++distance) {
      const int peer = (ring_.rank() + distance) % ring_.size();
      const Range theirs = part(piece, peer);
      ring_.wait_reduced(peer, first_step_ + i);
      copy_out((piece.first + theirs.first) * element_, in_slot(peer, i, theirs.first), theirs.count);
    }
    ring_.done(first_step_ + i);
  }

  /// In place, the output's lines are in the cache: they were input two pieces ago.
  void copy_out(std::size_t offset, const std::byte* from, std::size_t count) const {
    if (output_ != input_ && bytes_ >= kLeastStreamedBytes) {
      streaming_copy(output_ + offset, from, count * element_);
    } else {
      std::memcpy(output_ + offset, from, count * element_);
    }
  }

  Ring& ring_;
  const std::size_t element_;  ///< its bytes
  const std::size_t bytes_;    ///< of the whole buffer
  const std::byte* const input_;
  std::byte* const output_;
  const RankOrderReduction reduction_;
  const Pieces pieces_;
  const std::uint64_t first_step_;
  std::vector<const void*> inputs_;  ///< by rank
};

}  // namespace

void allreduce(Channels& channels, const Call& call) {
  const std::size_t bytes = call.count * size_of(call.dtype);
  if (bytes <= channels.small.most_bytes()) {
    call.tell_stage(shm_stage(call.kind), kOneStep);
    return reduce_all(channels, call);
  }
  channels.peers.run(
      {.kind = call.kind,
       .bytes = bytes,
       .input = call.input,
       .input_bytes = bytes,
       .output = call.output,
       .output_bytes = bytes,
       .call = &call},
      [&] { Pipeline(channels.ring, call).run(); },
      [&](PeerBuffers::Route route) { allreduce_directly(channels, call, route); });
}

}  // namespace runjob::runtime
