#include "runtime/collectives/shm/allreduce.hpp"

#include <vector>

#include "runtime/collectives/rank_order_reduction.hpp"
#include "runtime/collectives/shm/direct_allreduce.hpp"
#include "runtime/collectives/shm/memory/pieces.hpp"
#include "runtime/collectives/shm/stage.hpp"
#include "runtime/collectives/shm/tuning/streaming_copy.hpp"

namespace runjob::runtime {
namespace {

/// Pieces of this size still pay for their steps; with fewer than four pieces nothing overlaps.
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

/// The base of both algorithms that move pieces through ring cells.
class Pieced {
 protected:
  Pieced(Ring& ring, const Call& call, const Algorithm& algorithm)
      : ring_(ring),
        copy_in_(copy_with(algorithm.in)),
        out_(algorithm.out),
        element_(size_of(call.dtype)),
        bytes_(call.count * element_),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        reduction_(reduction_of(call, ring.size())),
        piece_bytes_(piece_bytes(bytes_, kWantedPieces, kLeastPieceBytes, ring.cell_bytes())),
        pieces_(call.count, piece_bytes_ / element_),
        first_step_(ring.take_steps(pieces_.number(), piece_bytes_)),
        inputs_(static_cast<std::size_t>(ring.size())) {}

  std::byte* in_cell(int rank, std::size_t i, std::size_t element) const {
    return ring_.cell(rank, first_step_ + i) + element * element_;
  }

  /// Waits until all ranks have contributed to piece i and sets `inputs_` to its elements from `first` on. The piece
  /// begins at element `begin` of the whole buffer.
  void wait_for_inputs(std::size_t i, std::size_t begin, std::size_t first) {
    for (int peer = 0; peer < ring_.size(); ++peer) {
      const bool is_own = peer == ring_.rank();
      if (!is_own) ring_.wait_filled(peer, first_step_ + i);
      inputs_[static_cast<std::size_t>(peer)] = is_own ? input_ + (begin + first) * element_ : in_cell(peer, i, first);
    }
  }

  /// Sums `inputs_` a block at a time. Each block is copied from the first cache to element `first` of the output, and
  /// to `cell` unless that is null.
  void sum_in_blocks(std::size_t first, std::size_t count, std::byte* cell) {
    alignas(64) std::byte sum[kBlockBytes];
    const Pieces blocks(count, kBlockBytes / element_);
    for (std::size_t i = 0; i < blocks.number(); ++i) {
      const Range block = blocks[i];
      reduction_.run(sum, inputs_, block.count);
      if (cell != nullptr) copy_in_(cell + block.first * element_, sum, block.count * element_);
      copy_out(first + block.first, sum, block.count);
      for (const void*& input : inputs_) input = static_cast<const std::byte*>(input) + block.count * element_;
    }
  }

  /// False in place: the lines of the output are in the cache, since they were input a moment ago.
  bool streams_output() const { return out_ == Stores::kStreaming && output_ != input_; }
  /// Copies `count` elements to element `first` of the output.
  void copy_out(std::size_t first, const std::byte* from, std::size_t count) const {
    copy_with(streams_output() ? Stores::kStreaming : Stores::kCached)(output_ + first * element_, from,
                                                                       count * element_);
  }

  Ring& ring_;
  const CopyFunction copy_in_;
  const Stores out_;
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

/// Each rank reduces its part of every piece and collects the other parts. The bytes that a rank moves hardly depend on
/// the number of ranks.
class Pipeline : Pieced {
 public:
  Pipeline(Ring& ring, const Call& call, const Algorithm& algorithm) : Pieced(ring, call, algorithm) {}

  void run() {
    const std::size_t count = pieces_.number();
    for (std::size_t i = 0; i < count + 2; ++i) {
      if (i < count) contribute(i);
      if (i >= 1 && i - 1 < count) reduce(i - 1);
      if (i >= 2) collect(i - 2);
    }
  }

 private:
  /// Rank `rank`'s part of `piece`, relative to the beginning of the piece, in the buffers and in the ring cells.
  Range part(const Range& piece, int rank) const { return part_of(piece.count, element_, rank, ring_.size()); }

  /// Copies the parts that the other ranks reduce into this rank's ring cell: all of the piece except for its own part.
  void contribute(std::size_t i) {
    ring_.wait_free(first_step_ + i);
    const Range piece = pieces_[i], own = part(piece, ring_.rank());
    const std::byte* source = input_ + piece.first * element_;
    const std::size_t after = own.first + own.count;
    copy_in_(in_cell(ring_.rank(), i, 0), source, own.first * element_);
    copy_in_(in_cell(ring_.rank(), i, after), source + after * element_, (piece.count - after) * element_);
    ring_.filled(first_step_ + i);
  }

  /// Reduces this rank's part into its own ring cell, where the others read it, and into the output.
  void reduce(std::size_t i) {
    const Range piece = pieces_[i], own = part(piece, ring_.rank());
    wait_for_inputs(i, piece.first, own.first);
    std::byte* result = in_cell(ring_.rank(), i, own.first);
    if (copy_in_ == &copy_bytes) {
      reduction_.run(result, inputs_, own.count);
      ring_.reduced(first_step_ + i);
      copy_out(piece.first + own.first, result, own.count);
    } else {
      sum_in_blocks(piece.first + own.first, own.count, result);  // the ring cell would have to be fetched again
      ring_.reduced(first_step_ + i);
    }
  }

  /// Copies the parts that the others have reduced to the output. Each rank begins with the next one, so that not all
  /// read from the same rank at once.
  void collect(std::size_t i) {
    const Range piece = pieces_[i];
    for (int distance = 1; distance < ring_.size(); ++distance) {
      const int peer = (ring_.rank() + distance) % ring_.size();
      const Range theirs = part(piece, peer);
      ring_.wait_reduced(peer, first_step_ + i);
      copy_out(piece.first + theirs.first, in_cell(peer, i, theirs.first), theirs.count);
    }
    ring_.done(first_step_ + i);
  }
};

/// Each rank contributes all of its input and makes the whole sum. With two ranks that moves as many bytes as the
/// pipeline and takes one wait less for each piece.
class Exchange : Pieced {
 public:
  Exchange(Ring& ring, const Call& call, const Algorithm& algorithm) : Pieced(ring, call, algorithm) {}

  void run() {
    for (std::size_t i = 0; i <= pieces_.number(); ++i) {
      if (i < pieces_.number()) contribute(i);
      if (i >= 1) reduce(i - 1);
    }
  }

 private:
  void contribute(std::size_t i) {
    ring_.wait_free(first_step_ + i);
    copy_in_(in_cell(ring_.rank(), i, 0), input_ + pieces_[i].first * element_, pieces_[i].count * element_);
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

void through_ring(Ring& ring, const Call& call, const Algorithm& algorithm) {
  // To sum 16-bit floats takes longer than to move them, so that two ranks should share the sums.
  if (ring.size() == 2 && !is_half(call.dtype)) return Exchange(ring, call, algorithm).run();
  Pipeline(ring, call, algorithm).run();
}

}  // namespace

void allreduce(Channels& channels, const Call& call) {
  const std::size_t bytes = call.count * size_of(call.dtype);
  if (bytes <= channels.small.most_bytes()) {
    call.tell_stage(shm_stage(call.kind), name_of({Path::kOneStep}));
    return in_one_step(channels, call, channels.small.copy(bytes));
  }
  const LargeMessage::Part message{
      .kind = call.kind,
      .bytes = bytes,
      .buffers = {.input = call.input, .input_bytes = bytes, .output = call.output, .output_bytes = bytes},
      .copied_out = {static_cast<std::byte*>(call.output), call.output == call.input ? 0 : bytes},
      .call = &call};
  channels.large.run(message, [&](const Algorithm& algorithm) {
    switch (algorithm.path) {
      case Path::kOneStep:
        return in_one_step(channels, call, copy_with(algorithm.in));
      case Path::kPipeline:
        return through_ring(channels.ring, call, algorithm);
      case Path::kCma:
      case Path::kSymmetric:
        return allreduce_directly(channels, call, algorithm.path);
    }
  });
}

}  // namespace runjob::runtime
