#include "runtime/collectives/shm/reducescatter.hpp"

#include <algorithm>
#include <vector>

#include "runtime/collectives/rank_order_reduction.hpp"
#include "runtime/collectives/shm/sections.hpp"
#include "runtime/collectives/shm/stage.hpp"

namespace runjob::runtime {
namespace {

class Reducescatter {
 public:
  Reducescatter(Channels& channels, const Call& call)
      : channels_(channels),
        call_(call),
        element_(size_of(call.dtype)),
        bytes_(call.count * element_),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        reduction_(call.dtype, call.op, call.prescale, call.postscale, channels.group.size()),
        inputs_(call.counts.size()) {
    std::size_t before = 0;
    for (const std::size_t count : call.counts) {
      parts_.push_back({before, count * element_});
      before += parts_.back().count;
    }
  }

  void run() {
    if (bytes_ <= channels_.small.most_bytes()) {
      call_.tell_stage(shm_stage(call_.kind), name_of({Path::kOneStep}));
      return in_one_step(channels_.small.copy(bytes_));
    }
    const LargeMessage::Part message{
        .kind = call_.kind, .bytes = bytes_, .buffers = {.input = input_, .input_bytes = bytes_}, .call = &call_};
    channels_.large.run(message, [&](const Algorithm& algorithm) {
      switch (algorithm.path) {
        case Path::kOneStep:
          return in_one_step(copy_with(algorithm.in));
        case Path::kPipeline:
          return through_sections(copy_with(algorithm.in));
        case Path::kCma:
        case Path::kSymmetric:
          return read_directly();
      }
    });
  }

 private:
  void through_sections(CopyFunction copy) {
    const auto longer = [](const Range& a, const Range& b) { return a.count < b.count; };
    Sections sections(channels_.ring, std::max_element(parts_.begin(), parts_.end(), longer)->count);
    sections.run([&](int peer, std::byte* to, std::size_t i) { give(sections, peer, to, i, copy); },
                 [&](std::size_t i) { reduce(sections, i); });
  }

  /// Each rank reduces its part of the inputs in place, or of copies that stay in the second cache.
  void read_directly() {
    constexpr std::size_t kOfAll = 512u << 10, kLeast = 16u << 10, kMost = 256u << 10;
    const std::size_t most = piece_bytes(kOfAll, inputs_.size(), kLeast, kMost);
    const int own = channels_.group.rank();
    const Range part = parts_[static_cast<std::size_t>(own)];
    std::byte* room = channels_.buffers.scratch(most * inputs_.size());
    const Pieces pieces(part.count / element_, most / element_);
    for (std::size_t i = 0; i < pieces.number(); ++i) {
      channels_.group.check();
      const std::size_t offset = pieces[i].first * element_, bytes = pieces[i].count * element_;
      for (int rank = 0; rank < channels_.group.size(); ++rank) {
        const auto index = static_cast<std::size_t>(rank);
        inputs_[index] = rank == own
                             ? input_ + part.first + offset
                             : channels_.buffers.view_input(rank, part.first + offset, bytes, room + index * most);
      }
      reduction_.run(output_ + offset, inputs_, pieces[i].count);
    }
  }

  /// The parts that others reduce go into the message, at the place that they have in the input.
  void in_one_step(CopyFunction copy) {
    const int rank = channels_.group.rank();
    const Range own = parts_[static_cast<std::size_t>(rank)];
    const std::size_t after = own.first + own.count;
    std::byte* message = channels_.small.begin(bytes_);
    copy(message, input_, own.first);
    copy(message + after, input_ + after, bytes_ - after);
    channels_.small.give();
    for (int peer = 0; peer < channels_.group.size(); ++peer) {
      inputs_[static_cast<std::size_t>(peer)] =
          (peer == rank ? input_ : channels_.small.take(peer, bytes_)) + own.first;
    }
    reduction_.run(output_, inputs_, own.count / element_);
  }

  void give(const Sections& sections, int peer, std::byte* to, std::size_t i, CopyFunction copy) const {
    const Range part = parts_[static_cast<std::size_t>(peer)];
    const Range piece = sections.piece(part.count, i);
    copy(to, input_ + part.first + piece.first, piece.count);
  }

  void reduce(const Sections& sections, std::size_t i) {
    const int own = channels_.group.rank();
    const Range part = parts_[static_cast<std::size_t>(own)];
    const Range piece = sections.piece(part.count, i);
    for (int peer = 0; peer < channels_.group.size(); ++peer) {
      const bool is_own = peer == own;
      inputs_[static_cast<std::size_t>(peer)] =
          is_own ? input_ + part.first + piece.first : sections.section(peer, own, i);
    }
    reduction_.run(output_ + piece.first, inputs_, piece.count / element_);
  }

  Channels& channels_;
  const Call& call_;
  const std::size_t element_;  ///< its bytes
  const std::size_t bytes_;    ///< of the whole input
  const std::byte* const input_;
  std::byte* const output_;
  const RankOrderReduction reduction_;
  std::vector<Range> parts_;         ///< in bytes, by rank
  std::vector<const void*> inputs_;  ///< by rank
};

}  // namespace

void reducescatter(Channels& channels, const Call& call) {
  Reducescatter(channels, call).run();
}

}  // namespace runjob::runtime
