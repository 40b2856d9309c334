#include "runtime/collectives/shm/direct_allreduce.hpp"

#include <vector>

#include "base/error.hpp"
#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/rank_order_reduction.hpp"
#include "runtime/collectives/shm/memory/pieces.hpp"

namespace runjob::runtime {
namespace {

RankOrderReduction reduction_for(const Call& call, int size) {
  return {call.dtype, call.op, call.prescale, call.postscale, size};
}

/// Works piece by piece, so that a reduced piece is still in the first cache when it is copied to the other outputs.
void write_to_all(Channels& channels, const Call& call) {
  // The pieces of two ranks fit a first cache of 32 KiB: measured, docs/developers/measurements.md.
  constexpr std::size_t kPieceBytes = 8u << 10;
  const auto size = static_cast<std::size_t>(channels.group.size());
  const std::size_t element = size_of(call.dtype), bytes = call.count * element;
  const RankOrderReduction reduction = reduction_for(call, channels.group.size());
  const Range own = part_of(call.count, element, channels.group.rank(), channels.group.size());
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (int rank = 0; rank < channels.group.size(); ++rank) {
    inputs.push_back(channels.buffers.input(rank, bytes) + own.first * element);
    outputs.push_back(channels.buffers.output(rank, bytes) + own.first * element);
  }
  std::vector<const void*> pieces(size);
  const Pieces cut(own.count, kPieceBytes / element);
  for (std::size_t i = 0; i < cut.number(); ++i) {
    channels.group.check();
    const std::size_t offset = cut[i].first * element;
    for (std::size_t rank = 0; rank < size; ++rank) pieces[rank] = inputs[rank] + offset;
    reduction.run(outputs[0] + offset, pieces, cut[i].count);  // in place, the first output is the first input
    for (std::size_t rank = 1; rank < size; ++rank)
      copy_bytes(outputs[rank] + offset, outputs[0] + offset, cut[i].count * element);
  }
}

/// Reads the others' inputs and reduces piece i of its slice, while the others do the same; then copies piece i - 1 of
/// all other slices from the ranks that have reduced them.
class ReadAndCollect {
 public:
  ReadAndCollect(Channels& channels, const Call& call)
      : channels_(channels),
        element_(size_of(call.dtype)),
        count_(call.count),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        reduction_(reduction_for(call, channels.group.size())),
        piece_bytes_(bytes_of_piece(channels.group.size())),
        room_(channels.buffers.scratch((inputs_of(channels) + 1) * piece_bytes_)),
        inputs_(inputs_of(channels)) {}

  void run() {
    const std::size_t steps = Pieces(slice(0).count, piece_bytes_ / element_).number();  // the first one is the longest
    const std::uint64_t first_step = channels_.ring.take_steps(steps);
    for (std::size_t i = 0; i <= steps; ++i) {
      channels_.group.check();
      if (i < steps) {
        reduce(i);
        channels_.ring.reduced(first_step + i);
      }
      if (i > 0) collect(i - 1, first_step + i - 1);
    }
  }

 private:
  static std::size_t inputs_of(const Channels& channels) { return static_cast<std::size_t>(channels.group.size()); }
  /// The size with which the pieces of all ranks, which are summed together, stay in the second cache.
  static std::size_t bytes_of_piece(int size) {
    constexpr std::size_t kOfAll = 512u << 10, kLeast = 16u << 10, kMost = 256u << 10;
    return piece_bytes(kOfAll, static_cast<std::size_t>(size), kLeast, kMost);
  }

  Range slice(int rank) const { return part_of(count_, element_, rank, channels_.group.size()); }
  /// The i-th piece of `rank`'s slice, in bytes of the buffer.
  Range piece(int rank, std::size_t i) const {
    const Range all = slice(rank), part = Pieces(all.count, piece_bytes_ / element_)[i];
    return {(all.first + part.first) * element_, part.count * element_};
  }

  void reduce(std::size_t i) {
    const int own = channels_.group.rank();
    const Range part = piece(own, i);
    for (int rank = 0; rank < channels_.group.size(); ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      std::byte* room = room_ + index * piece_bytes_;
      inputs_[index] =
          rank == own ? input_ + part.first : channels_.buffers.view_input(rank, part.first, part.count, room);
    }
    std::byte* output = output_ + part.first;
    // In place, the output is this rank's input. It must not change before it is summed, unless it is the first input.
    std::byte* sum = own == 0 ? output : room_ + inputs_.size() * piece_bytes_;
    reduction_.run(sum, inputs_, part.count / element_);
    if (sum != output) copy_bytes(output, sum, part.count);
  }

  void collect(std::size_t i, std::uint64_t step) {
    for (int distance = 1; distance < channels_.group.size(); ++distance) {
      const int peer = (channels_.group.rank() + distance) % channels_.group.size();
      const Range part = piece(peer, i);
      if (part.count == 0) continue;
      channels_.ring.wait_reduced(peer, step);
      channels_.buffers.fetch_output(peer, part.first, part.count, output_ + part.first);
    }
  }

  Channels& channels_;
  const std::size_t element_;  ///< its bytes
  const std::size_t count_;
  const std::byte* const input_;
  std::byte* const output_;
  const RankOrderReduction reduction_;
  const std::size_t piece_bytes_;
  std::byte* const room_;            ///< a piece of each rank, and their sum
  std::vector<const void*> inputs_;  ///< by rank
};

}  // namespace

void allreduce_directly(Channels& channels, const Call& call, Path path) {
  switch (path) {
    case Path::kSymmetric:
      return write_to_all(channels, call);
    case Path::kCma:
      return ReadAndCollect(channels, call).run();
    case Path::kOneStep:
    case Path::kPipeline:
      break;
  }
  throw Error(Errc::kBug, "a path on which no rank reads another one's buffers");
}

}  // namespace runjob::runtime
