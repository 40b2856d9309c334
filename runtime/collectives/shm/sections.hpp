#pragma once

#include "base/error.hpp"
#include "runtime/collectives/shm/memory/pieces.hpp"
#include "runtime/collectives/shm/ring.hpp"

namespace runjob::runtime {

/// Steps of a ring in which every rank has a part for every other rank. Each ring cell is divided into as many sections
/// as there are ranks, and the part for a rank lies in that rank's section. A part that is longer than a section takes
/// several steps.
/// Owner    the ring is the caller's and outlives the sections.
/// Threads  one at a time; on all ranks the same steps in the same order.
class Sections {
 public:
  /// `largest`: bytes of the longest part that any rank has for any other; the same on all ranks. Parts are cut at
  /// multiples of 16 bytes. Errors  Error(kUnavailable) if a ring cell has less than 16 bytes for each rank.
  Sections(Ring& ring, std::size_t largest)
      : ring_(ring),
        section_bytes_(section_bytes(ring, largest)),
        steps_(Pieces(largest, section_bytes_).number()),
        first_step_(ring.take_steps(steps_, section_bytes_ * static_cast<std::size_t>(ring.size()))) {}

  /// Moves all parts. `give(peer, to, i)` writes piece i of the part for `peer`; `collect(i)` is called when all ranks
  /// have given theirs. Piece i is given before piece i - 1 is collected, so that no rank waits for it.
  /// Errors  throws what Ring, `give` and `collect` throw.
  template <class Give, class Collect>
  void run(Give give, Collect collect) {
    for (std::size_t i = 0; i <= steps_; ++i) {
      if (i < steps_) {
        ring_.wait_free(first_step_ + i);
        for (int distance = 1; distance < ring_.size(); ++distance) {
          const int peer = (ring_.rank() + distance) % ring_.size();
          give(peer, section(ring_.rank(), peer, i), i);
        }
        ring_.filled(first_step_ + i);
      }
      if (i == 0) continue;
      for (int distance = 1; distance < ring_.size(); ++distance)
        ring_.wait_filled((ring_.rank() + distance) % ring_.size(), first_step_ + i - 1);
      collect(i - 1);
      ring_.done(first_step_ + i - 1);
    }
  }

  /// Piece i of the part that `from` has for `to`, once `from` has given it.
  std::byte* section(int from, int to, std::size_t i) const {
    return ring_.cell(from, first_step_ + i) + static_cast<std::size_t>(to) * section_bytes_;
  }
  /// The range of piece i in a part of `bytes` bytes.
  Range piece(std::size_t bytes, std::size_t i) const { return Pieces(bytes, section_bytes_)[i]; }

 private:
  static std::size_t section_bytes(const Ring& ring, std::size_t largest) {
    constexpr std::size_t kUnit = 16;
    const std::size_t most = ring.cell_bytes() / static_cast<std::size_t>(ring.size()) / kUnit * kUnit;
    if (most == 0) throw Error(Errc::kUnavailable, "too many ranks on one host for shared memory");
    return std::min(most, (largest + kUnit - 1) / kUnit * kUnit);
  }

  Ring& ring_;
  const std::size_t section_bytes_;
  const std::size_t steps_;
  const std::uint64_t first_step_;
};

}  // namespace runjob::runtime
