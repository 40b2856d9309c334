#include "runtime/collectives/shm/allreduce.hpp"

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
constexpr std::size_t kBlockBytes = 8u << 10;

RankOrderReduction reduction_of(const Call& call, int size) {
  return {call.dtype, call.op, call.prescale, call.postscale, size};
}

void in_one_step(Channels& channels, const Call& call, CopyFunction copy) {
  const int size = channels.group.size();
  const std::size_t bytes = call.count * size_of(call.dtype);
  channels.small.send(call.input, bytes, copy);
  std::vector<const void*> inputs;
  for (int rank = 0; rank < size; ++rank)
    inputs.push_back(rank == channels.group.rank() ? call.input : channels.small.take(rank, bytes));
  reduction_of(call, size).run(call.output, inputs, call.count);
}

/// What both ways through the slots have.
class Pieced {
 protected:
  Pieced(Ring& ring, const Call& call, Copies copies)
      : ring_(ring),
        copies_(copies),
        element_(size_of(call.dtype)),
        bytes_(call.count * element_),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        reduction_(reduction_of(call, ring.size())),
        piece_bytes_(piece_bytes(bytes_, kWantedPieces, kLeastPieceBytes, ring.slot_bytes())),
        pieces_(call.count, piece_bytes_ / element_),
        first_step_(ring.take_steps(pieces_.number(), piece_bytes_)),
        inputs_(static_cast<std::size_t>(ring.size())) {}

  std::byte* in_slot(int rank, std::size_t i, std::size_t element) const {
    return ring_.slot(rank, first_step_ + i) + element * element_;
  }

  /// Waits for what all ranks give to piece i, of which the elements from `first` on are wanted. The piece begins at element
  /// `begin` of the whole buffer.
  void wait_for_inputs(std::size_t i, std::size_t begin, std::size_t first) {
    for (int peer = 0; peer < ring_.size(); ++peer) {
      const bool is_own = peer == ring_.rank();
      if (!is_own) ring_.wait_filled(peer, first_step_ + i);
      inputs_[static_cast<std::size_t>(peer)] = is_own ? input_ + (begin + first) * element_ : in_slot(peer, i, first);
    }
  }

  /// Sums `inputs_` a block at a time, which both the output, at element `first`, and `slot`, if any, get from the first cache.
  void sum_in_blocks(std::size_t first, std::size_t count, std::byte* slot) {
    alignas(64) std::byte sum[kBlockBytes];
    const Pieces blocks(count, kBlockBytes / element_);
    for (std::size_t i = 0; i < blocks.number(); ++i) {
      const Range block = blocks[i];
      reduction_.run(sum, inputs_, block.count);
      if (slot != nullptr) copies_.in(slot + block.first * element_, sum, block.count * element_);
      copy_out(first + block.first, sum, block.count);
      for (const void*& input : inputs_) input = static_cast<const std::byte*>(input) + block.count * element_;
    }
  }

  /// In place, the output's lines are in the cache: they were input a moment ago.
  bool streams_output() const { return copies_.out == &streaming_copy && output_ != input_; }
  /// To the output, at element `first`.
  void copy_out(std::size_t first, const std::byte* from, std::size_t count) const {
    std::byte* to = output_ + first * element_;
    if (streams_output()) {
      streaming_copy(to, from, count * element_);
    } else {
      plain_copy(to, from, count * element_);
    }
  }

  Ring& ring_;
  const Copies copies_;
  const std::size_t element_;  ///< its bytes
  const std::size_t bytes_;    ///< of the whole buffer
  const std::byte* const input_;
  std::byte* const output_;
  const RankOrderReduction reduction_;
  const std::size_t piece_bytes_;
  const Pieces pieces_;
  const std::uint64_t first_step_;
  std::vector<const void*> inputs_;  ///< by rank
};

/// Each rank reduces its part of every piece and collects the other parts, which takes as many bytes however many ranks there are.
class Pipeline : Pieced {
 public:
  Pipeline(Ring& ring, const Call& call, Copies copies) : Pieced(ring, call, copies) {}

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

  /// Copies what the other ranks reduce into this rank's slot: all of the piece but its own part.
  void contribute(std::size_t i) {
    ring_.wait_free(first_step_ + i);
    const Range piece = pieces_[i], own = part(piece, ring_.rank());
    const std::byte* source = input_ + piece.first * element_;
    const std::size_t after = own.first + own.count;
    copies_.in(in_slot(ring_.rank(), i, 0), source, own.first * element_);
    copies_.in(in_slot(ring_.rank(), i, after), source + after * element_, (piece.count - after) * element_);
    ring_.filled(first_step_ + i);
  }

  /// Reduces this rank's part into its own slot, where the others find it, and to the output.
  void reduce(std::size_t i) {
    const Range piece = pieces_[i], own = part(piece, ring_.rank());
    wait_for_inputs(i, piece.first, own.first);
    std::byte* result = in_slot(ring_.rank(), i, own.first);
    if (copies_.in == &plain_copy) {
      reduction_.run(result, inputs_, own.count);
      ring_.reduced(first_step_ + i);
      copy_out(piece.first + own.first, result, own.count);
    } else {
      sum_in_blocks(piece.first + own.first, own.count, result);  // the slot would have to be fetched again
      ring_.reduced(first_step_ + i);
    }
  }

  /// Copies what the others have reduced to the output, beginning with the next rank: not all at one.
  void collect(std::size_t i) {
    const Range piece = pieces_[i];
    for (int distance = 1; distance < ring_.size(); ++distance) {
      const int peer = (ring_.rank() + distance) % ring_.size();
      const Range theirs = part(piece, peer);
      ring_.wait_reduced(peer, first_step_ + i);
      copy_out(piece.first + theirs.first, in_slot(peer, i, theirs.first), theirs.count);
    }
    ring_.done(first_step_ + i);
  }
};

/// Each rank gives all of its input and makes the whole sum: for two ranks as many bytes as in the pipeline, and one wait less for
/// each piece.
class Exchange : Pieced {
 public:
  Exchange(Ring& ring, const Call& call, Copies copies) : Pieced(ring, call, copies) {}

  void run() {
    for (std::size_t i = 0; i <= pieces_.number(); ++i) {
      if (i < pieces_.number()) contribute(i);
      if (i >= 1) reduce(i - 1);
    }
  }

 private:
  void contribute(std::size_t i) {
    ring_.wait_free(first_step_ + i);
    copies_.in(in_slot(ring_.rank(), i, 0), input_ + pieces_[i].first * element_, pieces_[i].count * element_);
    ring_.filled(first_step_ + i);
  }

  void reduce(std::size_t i) {
    const Range piece = pieces_[i];
    wait_for_inputs(i, piece.first, 0);
    if (streams_output()) {
      sum_in_blocks(piece.first, piece.count, nullptr);
    } else {
      reduction_.run(output_ + piece.first * element_, inputs_, piece.count);
    }
    ring_.done(first_step_ + i);
  }
};

void through_slots(Ring& ring, const Call& call, Copies copies) {
  // Summing those of 16 bits takes longer than moving them: two ranks had better share it.
  if (ring.size() == 2 && !is_half(call.dtype)) return Exchange(ring, call, copies).run();
  Pipeline(ring, call, copies).run();
}

}  // namespace

void allreduce(Channels& channels, const Call& call) {
  const std::size_t bytes = call.count * size_of(call.dtype);
  if (bytes <= channels.small.most_bytes()) {
    call.tell_stage(shm_stage(call.kind), kInOneStep);
    return in_one_step(channels, call, channels.small.copy(bytes));
  }
  channels.peers.run(
      {.kind = call.kind,
       .bytes = bytes,
       .input = call.input,
       .input_bytes = bytes,
       .output = call.output,
       .output_bytes = bytes,
       .copied_out = {static_cast<std::byte*>(call.output), call.output == call.input ? 0 : bytes},
       .call = &call},
      [&](CopyFunction copy) { in_one_step(channels, call, copy); },
      [&](Copies copies) { through_slots(channels.ring, call, copies); },
      [&](PeerBuffers::Route route) { allreduce_directly(channels, call, route); });
}

}  // namespace runjob::runtime
