#pragma once

#include "runtime/collectives/shm/group.hpp"

namespace runjob::runtime {

/// Large messages, piece by piece: each rank has a ring of slots that it alone writes, one for each step, and words that say
/// how far it has come. There is no barrier; a rank may be as many steps ahead of the slowest as there are slots.
/// Pieces smaller than a slot lie in it at another place each time, so that all slots are written before any place is written again:
/// what another processor has read a moment ago is slow to write, since each line must be taken out of its cache first.
/// Threads  one; on all ranks the same steps in the same order.
class Ring {
 public:
  explicit Ring(Group& group) : group_(group) {}

  std::size_t slot_bytes() const { return group_.layout().slot_bytes(); }
  int size() const { return group_.size(); }
  int rank() const { return group_.rank(); }

  /// Takes the next `count` steps, of at most `bytes` in a slot, and returns the first; all ranks must then publish every word
  /// of each that others wait for, and done().
  std::uint64_t take_steps(std::size_t count, std::size_t bytes);
  std::uint64_t take_steps(std::size_t count) { return take_steps(count, slot_bytes()); }

  /// Of a step that was taken last.
  std::byte* slot(int rank, std::uint64_t step) const {
    return group_.slot(rank, step % Layout::kSlots) + step / Layout::kSlots % places_ * stride_;
  }

  /// Until nobody reads what this rank's slot of `step` held before. Also notices the end of the group.
  void wait_free(std::uint64_t step);
  void wait_filled(int peer, std::uint64_t step) { group_.wait(peer, group_.words(peer).progress.filled, step); }
  void wait_reduced(int peer, std::uint64_t step) { group_.wait(peer, group_.words(peer).progress.reduced, step); }
  void wait_done(int peer, std::uint64_t step) { group_.wait(peer, group_.words(peer).progress.done, step); }

  void filled(std::uint64_t step) { group_.publish(group_.own().progress.filled, step); }
  void reduced(std::uint64_t step) { group_.publish(group_.own().progress.reduced, step); }
  void done(std::uint64_t step) { group_.publish(group_.own().progress.done, step); }

 private:
  Group& group_;
  std::uint64_t next_ = 1;
  std::size_t stride_ = 0, places_ = 1;  ///< in a slot, for pieces of this size
};

}  // namespace runjob::runtime
