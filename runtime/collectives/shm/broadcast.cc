#include "runtime/collectives/shm/broadcast.hpp"

#include <cstring>

#include "runtime/collectives/shm/pieces.hpp"
#include "runtime/collectives/shm/stage.hpp"
#include "runtime/collectives/shm/streaming_copy.hpp"

namespace runjob::runtime {
namespace {

void in_one_step(Channels& channels, const Call& call, std::size_t bytes, CopyFunction copy) {
  SmallExchange& small = channels.small;
  if (channels.group.rank() == call.root) return small.send(call.output, bytes, copy);
  small.send(nullptr, 0);  // says that the steps before were read
  std::memcpy(call.output, small.take(call.root, bytes), bytes);
}

/// The root is a piece ahead of the others, so the first one is time that they wait.
constexpr std::size_t kLeastPieceBytes = 16u << 10;
constexpr std::size_t kWantedPieces = 16;

void piece_by_piece(Ring& ring, const Call& call, std::size_t bytes, Copies copies) {
  const std::size_t most = piece_bytes(bytes, kWantedPieces, kLeastPieceBytes, ring.slot_bytes());
  const Pieces pieces(bytes, most);
  const std::uint64_t first_step = ring.take_steps(pieces.number(), most);
  auto* data = static_cast<std::byte*>(call.output);
  for (std::size_t i = 0; i < pieces.number(); ++i) {
    const std::uint64_t step = first_step + i;
    const Range piece = pieces[i];
    ring.wait_free(step);
    if (ring.rank() == call.root) {
      copies.in(ring.slot(ring.rank(), step), data + piece.first, piece.count);
      ring.filled(step);
    } else {
      ring.wait_filled(call.root, step);
      copies.out(data + piece.first, ring.slot(call.root, step), piece.count);
    }
    ring.done(step);
  }
}

/// All ranks, the root too, copy a part of the root's buffer into all others; or each copies all of it into its own.
void directly(Channels& channels, const Call& call, std::size_t bytes, PeerBuffers::Route route) {
  constexpr std::size_t kPieceBytes = 16u << 10, kLeastStreamedBytes = 32u << 20;
  PeerBuffers& peers = channels.peers;
  const int size = channels.group.size();
  if (route == PeerBuffers::Route::kRead) {
    if (channels.group.rank() == call.root) return;
    return peers.fetch_input(call.root, 0, bytes, static_cast<std::byte*>(call.output));
  }
  const Range own = part_of(bytes, 1, channels.group.rank(), size);
  const Pieces pieces(own.count, kPieceBytes);
  for (std::size_t i = 0; i < pieces.number(); ++i) {
    channels.group.check();
    const std::size_t offset = own.first + pieces[i].first;
    const std::byte* from = peers.input(call.root, bytes) + offset;
    for (int rank = 0; rank < size; ++rank) {
      if (rank == call.root) continue;
      std::byte* to = peers.output(rank, bytes) + offset;
      if (bytes >= kLeastStreamedBytes) {
        streaming_copy(to, from, pieces[i].count);
      } else {
        std::memcpy(to, from, pieces[i].count);
      }
    }
  }
}

}  // namespace

void broadcast(Channels& channels, const Call& call) {
  const std::size_t bytes = call.count * size_of(call.dtype);
  if (bytes <= channels.small.most_bytes()) {
    call.tell_stage(shm_stage(call.kind), kInOneStep);
    return in_one_step(channels, call, bytes, channels.small.copy(bytes));
  }
  channels.peers.run(
      {.kind = call.kind,
       .bytes = bytes,
       .input = call.output,
       .input_bytes = bytes,
       .output = call.output,
       .output_bytes = bytes,
       .copied_out = {static_cast<std::byte*>(call.output), bytes},
       .call = &call},
      [&](CopyFunction copy) { in_one_step(channels, call, bytes, copy); },
      [&](Copies copies) { piece_by_piece(channels.ring, call, bytes, copies); },
      [&](PeerBuffers::Route route) { directly(channels, call, bytes, route); });
}

}  // namespace runjob::runtime
