#include "runtime/collectives/shm/allgather.hpp"

#include <algorithm>

#include "runtime/collectives/shm/pieces.hpp"
#include "runtime/collectives/shm/stage.hpp"

namespace runjob::runtime {
namespace {

/// Every rank's bytes, and where they go in the output.
struct Parts {
  std::vector<Range> ranges;  ///< in bytes, by rank

  explicit Parts(const Call& call) {
    std::size_t before = 0;
    for (const std::size_t count : call.counts) {
      ranges.push_back({before, count * size_of(call.dtype)});
      before += ranges.back().count;
    }
  }
  std::size_t largest() const {
    return std::max_element(ranges.begin(), ranges.end(),
                            [](const Range& a, const Range& b) { return a.count < b.count; })
        ->count;
  }
  std::size_t total() const { return ranges.back().first + ranges.back().count; }
  const Range& operator[](int rank) const { return ranges[static_cast<std::size_t>(rank)]; }
};

void in_one_step(Channels& channels, const Call& call, const Parts& parts, CopyFunction copy) {
  auto* output = static_cast<std::byte*>(call.output);
  const int own = channels.group.rank();
  channels.small.send(call.input, parts[own].count, copy);
  plain_copy(output + parts[own].first, static_cast<const std::byte*>(call.input), parts[own].count);
  for (int distance = 1; distance < channels.group.size(); ++distance) {
    const int peer = (own + distance) % channels.group.size();
    plain_copy(output + parts[peer].first, channels.small.take(peer, parts[peer].count), parts[peer].count);
  }
}

class Stream {
 public:
  Stream(Ring& ring, const Call& call, const Parts& parts, Copies copies)
      : ring_(ring),
        copies_(copies),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        parts_(parts),
        piece_bytes_(std::min(parts.largest(), ring.slot_bytes())),
        steps_(Pieces(parts.largest(), piece_bytes_).number()),
        first_step_(ring.take_steps(steps_, piece_bytes_)) {}

  /// Gives piece i before it collects piece i - 1, so that nobody waits for it.
  void run() {
    for (std::size_t i = 0; i <= steps_; ++i) {
      if (i < steps_) give(i);
      if (i > 0) collect(i - 1);
    }
  }

 private:
  Range piece(int rank, std::size_t i) const { return Pieces(parts_[rank].count, piece_bytes_)[i]; }
  std::byte* output(int rank, const Range& piece) const { return output_ + parts_[rank].first + piece.first; }

  void give(std::size_t i) {
    const std::uint64_t step = first_step_ + i;
    ring_.wait_free(step);
    const Range own = piece(ring_.rank(), i);
    if (own.count == 0) return;  // nobody looks for more than there is
    copies_.in(ring_.slot(ring_.rank(), step), input_ + own.first, own.count);
    ring_.filled(step);
    copies_.out(output(ring_.rank(), own), input_ + own.first, own.count);
  }

  void collect(std::size_t i) {
    const std::uint64_t step = first_step_ + i;
    for (int distance = 1; distance < ring_.size(); ++distance) {
      const int peer = (ring_.rank() + distance) % ring_.size();
      const Range theirs = piece(peer, i);
      if (theirs.count == 0) continue;
      ring_.wait_filled(peer, step);
      copies_.out(output(peer, theirs), ring_.slot(peer, step), theirs.count);
    }
    ring_.done(step);
  }

  Ring& ring_;
  const Copies copies_;
  const std::byte* const input_;
  std::byte* const output_;
  const Parts& parts_;
  const std::size_t piece_bytes_;
  const std::size_t steps_;
  const std::uint64_t first_step_;
};

/// Each rank copies the others' inputs from where they lie.
void read_directly(Channels& channels, const Call& call, const Parts& parts) {
  auto* output = static_cast<std::byte*>(call.output);
  const int own = channels.group.rank();
  plain_copy(output + parts[own].first, static_cast<const std::byte*>(call.input), parts[own].count);
  for (int distance = 1; distance < channels.group.size(); ++distance) {
    const int peer = (own + distance) % channels.group.size();
    channels.peers.fetch_input(peer, 0, parts[peer].count, output + parts[peer].first);
  }
}

}  // namespace

void allgather(Channels& channels, const Call& call) {
  const Parts parts(call);
  if (parts.largest() <= channels.small.most_bytes()) {
    call.tell_stage(shm_stage(call.kind), kInOneStep);
    return in_one_step(channels, call, parts, channels.small.copy(parts[channels.group.rank()].count));
  }
  const std::size_t own_bytes = parts[channels.group.rank()].count;
  channels.peers.run(
      {.kind = call.kind,
       .bytes = parts.largest(),
       .input = call.input,
       .input_bytes = own_bytes,
       .copied_out = {static_cast<std::byte*>(call.output), parts.total()},
       .call = &call},
      [&](CopyFunction copy) { in_one_step(channels, call, parts, copy); },
      [&](Copies copies) { Stream(channels.ring, call, parts, copies).run(); },
      [&](PeerBuffers::Route) { read_directly(channels, call, parts); });
}

}  // namespace runjob::runtime
