#include "runtime/collectives/shm/broadcast.hpp"

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/shm/memory/pieces.hpp"
#include "runtime/collectives/shm/stage.hpp"
#include "runtime/collectives/shm/tuning/streaming_copy.hpp"

namespace runjob::runtime {
namespace {

void in_one_step(Channels& channels, const Call& call, std::size_t bytes, CopyFunction copy) {
  SmallExchange& small = channels.small;
  if (channels.group.rank() == call.root) return small.send(call.output, bytes, copy);
  small.send(nullptr, 0);  // reports that the steps before were read
  copy_bytes(call.output, small.take(call.root, bytes), bytes);
}

/// The root is a piece ahead of the others, which wait while it copies the first one: so the first piece should be
/// small.
constexpr std::size_t kLeastPieceOfBroadcast = 16u << 10;
constexpr std::size_t kPiecesOfBroadcast = 16;

void piece_by_piece(Ring& ring, const Call& call, std::size_t bytes, const Algorithm& algorithm) {
  const std::size_t most = piece_bytes(bytes, kPiecesOfBroadcast, kLeastPieceOfBroadcast, ring.cell_bytes());
  const Pieces pieces(bytes, most);
  const std::uint64_t first_step = ring.take_steps(pieces.number(), most);
  const CopyFunction copy_in = copy_with(algorithm.in), copy_out = copy_with(algorithm.out);
  auto* data = static_cast<std::byte*>(call.output);
  for (std::size_t i = 0; i < pieces.number(); ++i) {
    const std::uint64_t step = first_step + i;
    const Range piece = pieces[i];
    ring.wait_free(step);
    if (ring.rank() == call.root) {
      copy_in(ring.cell(ring.rank(), step), data + piece.first, piece.count);
      ring.filled(step);
    } else {
      ring.wait_filled(call.root, step);
      copy_out(data + piece.first, ring.cell(call.root, step), piece.count);
    }
    ring.done(step);
  }
}

/// Each rank but the root copies the root's buffer into its own.
void read_from_root(Channels& channels, const Call& call, std::size_t bytes) {
  if (channels.group.rank() == call.root) return;
  channels.buffers.fetch_input(call.root, 0, bytes, static_cast<std::byte*>(call.output));
}

/// Each rank, the root as well, copies its part of the root's buffer into all others.
void write_to_all(Channels& channels, const Call& call, std::size_t bytes) {
  constexpr std::size_t kPieceBytes = 16u << 10, kLeastStreamedBytes = 32u << 20;
  const BufferExchange& buffers = channels.buffers;
  const int size = channels.group.size();
  const Range own = part_of(bytes, 1, channels.group.rank(), size);
  const Pieces pieces(own.count, kPieceBytes);
  for (std::size_t i = 0; i < pieces.number(); ++i) {
    channels.group.check();
    const std::size_t offset = own.first + pieces[i].first;
    const std::byte* from = buffers.input(call.root, bytes) + offset;
    for (int rank = 0; rank < size; ++rank) {
      if (rank == call.root) continue;
      std::byte* to = buffers.output(rank, bytes) + offset;
      if (bytes >= kLeastStreamedBytes) {
        streaming_copy(to, from, pieces[i].count);
      } else {
        copy_bytes(to, from, pieces[i].count);
      }
    }
  }
}

}  // namespace

void broadcast(Channels& channels, const Call& call) {
  const std::size_t bytes = call.count * size_of(call.dtype);
  if (bytes <= channels.small.most_bytes()) {
    call.tell_stage(shm_stage(call.kind), name_of({Path::kOneStep}));
    return in_one_step(channels, call, bytes, channels.small.copy(bytes));
  }
  const LargeMessage::Part message{
      .kind = call.kind,
      .bytes = bytes,
      .buffers = {.input = call.output, .input_bytes = bytes, .output = call.output, .output_bytes = bytes},
      .copied_out = {static_cast<std::byte*>(call.output), bytes},
      .call = &call};
  channels.large.run(message, [&](const Algorithm& algorithm) {
    switch (algorithm.path) {
      case Path::kOneStep:
        return in_one_step(channels, call, bytes, copy_with(algorithm.in));
      case Path::kPipeline:
        return piece_by_piece(channels.ring, call, bytes, algorithm);
      case Path::kCma:
        return read_from_root(channels, call, bytes);
      case Path::kSymmetric:
        return write_to_all(channels, call, bytes);
    }
  });
}

}  // namespace runjob::runtime
