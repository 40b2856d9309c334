#include "runtime/collectives/shm/allgather.hpp"

#include <algorithm>

#include "runtime/collectives/shm/memory/pieces.hpp"
#include "runtime/collectives/shm/stage.hpp"

namespace runjob::runtime {
namespace {

/// The number of bytes of every rank's part, and its place in the output.
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
  copy_bytes(output + parts[own].first, call.input, parts[own].count);
  for (int distance = 1; distance < channels.group.size(); ++distance) {
    const int peer = (own + distance) % channels.group.size();
    copy_bytes(output + parts[peer].first, channels.small.take(peer, parts[peer].count), parts[peer].count);
  }
}

class Stream {
 public:
  Stream(Ring& ring, const Call& call, const Parts& parts, const Algorithm& algorithm)
      : ring_(ring),
        copy_in_(copy_with(algorithm.in)),
        copy_out_(copy_with(algorithm.out)),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        parts_(parts),
        piece_bytes_(std::min(parts.largest(), ring.cell_bytes())),
        steps_(Pieces(parts.largest(), piece_bytes_).number()),
        first_step_(ring.take_steps(steps_, piece_bytes_)) {}

  /// Gives piece i before it collects piece i - 1, so that no rank waits for it.
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
    if (own.count == 0) return;  // no rank waits for a piece that does not exist
    copy_in_(ring_.cell(ring_.rank(), step), input_ + own.first, own.count);
    ring_.filled(step);
    copy_out_(output(ring_.rank(), own), input_ + own.first, own.count);
  }

  void collect(std::size_t i) {
    const std::uint64_t step = first_step_ + i;
    for (int distance = 1; distance < ring_.size(); ++distance) {
      const int peer = (ring_.rank() + distance) % ring_.size();
      const Range theirs = piece(peer, i);
      if (theirs.count == 0) continue;
      ring_.wait_filled(peer, step);
      copy_out_(output(peer, theirs), ring_.cell(peer, step), theirs.count);
    }
    ring_.done(step);
  }

  Ring& ring_;
  const CopyFunction copy_in_, copy_out_;
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
  copy_bytes(output + parts[own].first, call.input, parts[own].count);
  for (int distance = 1; distance < channels.group.size(); ++distance) {
    const int peer = (own + distance) % channels.group.size();
    channels.buffers.fetch_input(peer, 0, parts[peer].count, output + parts[peer].first);
  }
}

}  // namespace

void allgather(Channels& channels, const Call& call) {
  const Parts parts(call);
  if (parts.largest() <= channels.small.most_bytes()) {
    call.tell_stage(shm_stage(call.kind), name_of({Path::kOneStep}));
    return in_one_step(channels, call, parts, channels.small.copy(parts[channels.group.rank()].count));
  }
  const std::size_t own_bytes = parts[channels.group.rank()].count;
  const LargeMessage::Part message{.kind = call.kind,
                                   .bytes = parts.largest(),
                                   .buffers = {.input = call.input, .input_bytes = own_bytes},
                                   .copied_out = {static_cast<std::byte*>(call.output), parts.total()},
                                   .call = &call};
  channels.large.run(message, [&](const Algorithm& algorithm) {
    switch (algorithm.path) {
      case Path::kOneStep:
        return in_one_step(channels, call, parts, copy_with(algorithm.in));
      case Path::kPipeline:
        return Stream(channels.ring, call, parts, algorithm).run();
      case Path::kCma:
      case Path::kSymmetric:
        return read_directly(channels, call, parts);
    }
  });
}

}  // namespace runjob::runtime
