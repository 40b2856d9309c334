#include "runtime/collectives/shm/alltoall.hpp"

#include <numeric>
#include <vector>

#include "runtime/collectives/shm/sections.hpp"
#include "runtime/collectives/shm/stage.hpp"

namespace runjob::runtime {
namespace {

/// The parts of a buffer, one after the other, in bytes, by rank.
std::vector<Range> ranges_of(const std::vector<std::size_t>& counts, std::size_t element_bytes) {
  std::vector<Range> ranges;
  std::size_t before = 0;
  for (const std::size_t count : counts) {
    ranges.push_back({before, count * element_bytes});
    before += ranges.back().count;
  }
  return ranges;
}

class Alltoall {
 public:
  Alltoall(Channels& channels, const Call& call)
      : channels_(channels),
        call_(call),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        outgoing_(ranges_of(call.send_counts, size_of(call.dtype))),
        incoming_(ranges_of(call.counts, size_of(call.dtype))),
        largest_(call.largest_part * size_of(call.dtype)) {}

  void run() {
    const std::size_t all = largest_ * incoming_.size();  // the same on all ranks
    if (all <= channels_.small.most_bytes()) {
      call_.tell_stage(shm_stage(call_.kind), name_of({Path::kOneStep}));
      return in_one_step(all, channels_.small.copy(all));
    }
    std::vector<std::size_t> begins;  // by rank: where its part of the input begins
    for (const Range& part : outgoing_) begins.push_back(part.first);
    const std::size_t input_bytes = outgoing_.back().first + outgoing_.back().count;
    const LargeMessage::Part message{.kind = call_.kind,
                                     .bytes = all,
                                     .buffers = {.input = input_, .input_bytes = input_bytes, .splits = begins},
                                     .copied_out = {output_, incoming_.back().first + incoming_.back().count},
                                     .call = &call_};
    channels_.large.run(message, [&](const Algorithm& algorithm) {
      switch (algorithm.path) {
        case Path::kOneStep:
          return in_one_step(all, copy_with(algorithm.in));
        case Path::kPipeline:
          return through_sections(copy_with(algorithm.in), copy_with(algorithm.out));
        case Path::kCma:
        case Path::kSymmetric:
          return read_directly();
      }
    });
  }

 private:
  void copy_own_part() const {
    const auto own = static_cast<std::size_t>(channels_.group.rank());
    copy_bytes(output_ + incoming_[own].first, input_ + outgoing_[own].first, outgoing_[own].count);
  }

  void in_one_step(std::size_t bytes, CopyFunction copy) {
    const auto own = static_cast<std::size_t>(channels_.group.rank());
    std::byte* message = channels_.small.begin(bytes);
    for (std::size_t peer = 0; peer < outgoing_.size(); ++peer)
      if (peer != own) copy(message + peer * largest_, input_ + outgoing_[peer].first, outgoing_[peer].count);
    channels_.small.give();
    copy_own_part();
    for (std::size_t peer = 0; peer < incoming_.size(); ++peer) {
      const std::byte* theirs = channels_.small.take(static_cast<int>(peer), bytes);
      if (peer != own) copy_bytes(output_ + incoming_[peer].first, theirs + own * largest_, incoming_[peer].count);
    }
  }

  void through_sections(CopyFunction copy_in, CopyFunction copy_out) {
    Sections sections(channels_.ring, largest_);
    sections.run([&](int peer, std::byte* to, std::size_t i) { give(sections, peer, to, i, copy_in); },
                 [&](std::size_t i) { collect(sections, i, copy_out); });
  }

  /// Each rank copies its parts out of the other ranks' inputs.
  void read_directly() const {
    copy_own_part();
    const int own = channels_.group.rank();
    for (int distance = 1; distance < channels_.group.size(); ++distance) {
      const int peer = (own + distance) % channels_.group.size();
      const Range part = incoming_[static_cast<std::size_t>(peer)];
      channels_.buffers.fetch_input(peer, channels_.buffers.split(peer, own), part.count, output_ + part.first);
    }
  }

  void give(const Sections& sections, int peer, std::byte* to, std::size_t i, CopyFunction copy) const {
    const Range part = outgoing_[static_cast<std::size_t>(peer)];
    const Range piece = sections.piece(part.count, i);
    copy(to, input_ + part.first + piece.first, piece.count);
  }

  void collect(const Sections& sections, std::size_t i, CopyFunction copy) const {
    const int own = channels_.group.rank();
    for (int peer = 0; peer < channels_.group.size(); ++peer) {
      const Range part = incoming_[static_cast<std::size_t>(peer)];
      const Range piece = sections.piece(part.count, i);
      const std::byte* from = peer == own ? input_ + outgoing_[static_cast<std::size_t>(own)].first + piece.first
                                          : sections.section(peer, own, i);
      copy(output_ + part.first + piece.first, from, piece.count);
    }
  }

  Channels& channels_;
  const Call& call_;
  const std::byte* const input_;
  std::byte* const output_;
  const std::vector<Range> outgoing_, incoming_;
  const std::size_t largest_;
};

}  // namespace

void alltoall(Channels& channels, const Call& call) {
  Alltoall(channels, call).run();
}

}  // namespace runjob::runtime
