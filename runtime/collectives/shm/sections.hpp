#pragma once

#include "base/error.hpp"
#include "runtime/collectives/shm/pieces.hpp"
#include "runtime/collectives/shm/ring.hpp"

namespace runjob::runtime {

/// Steps of a ring in which every rank has something for every other one: each slot is divided into as many sections as there
/// are ranks, and what goes to a rank lies in its section. A part longer than a section takes several steps.
class Sections {
 public:
  /// `largest`: bytes of the longest part that any rank has for any other; the same on all ranks. Parts are cut at multiples of
  /// 16 bytes. Errors  Error(kUnavailable) when there are too many ranks for slots this large.
  Sections(Ring& ring, std::size_t largest)
      : ring_(ring),
        section_bytes_(section_bytes(ring, largest)),
        steps_(Pieces(largest, section_bytes_).number()),
        first_step_(ring.take_steps(steps_, section_bytes_ * static_cast<std::size_t>(ring.size()))) {}

  /// Gives piece i before it collects piece i - 1, so that nobody waits for it. `give(peer, to, i)` writes the i-th piece of
  /// what goes to `peer`; when all have given theirs, `collect(i)` is called.
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

  /// What `from` has for `to` in step i, once it has given it.
  std::byte* section(int from, int to, std::size_t i) const {
    return ring_.slot(from, first_step_ + i) + static_cast<std::size_t>(to) * section_bytes_;
  }
  /// Bytes of the i-th piece of a part of `bytes`.
  Range piece(std::size_t bytes, std::size_t i) const { return Pieces(bytes, section_bytes_)[i]; }

 private:
  static std::size_t section_bytes(const Ring& ring, std::size_t largest) {
    constexpr std::size_t kUnit = 16;
    const std::size_t most = ring.slot_bytes() / static_cast<std::size_t>(ring.size()) / kUnit * kUnit;
    if (most == 0) throw Error(Errc::kUnavailable, "too many ranks on one host for shared memory");
    return std::min(most, (largest + kUnit - 1) / kUnit * kUnit);
  }

  Ring& ring_;
  const std::size_t section_bytes_;
  const std::size_t steps_;
  const std::uint64_t first_step_;
};

}  // namespace runjob::runtime
