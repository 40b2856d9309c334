#pragma once

#include "runtime/collectives/shm/group.hpp"

namespace runjob::runtime {

/// The exchange of large messages, piece by piece. Each rank has a ring of cells that it alone writes, one for each
/// step, and fields that publish its progress. There is no barrier: a rank may be as many steps ahead of the slowest
/// one as there are ring cells.
///
/// Pieces that are smaller than a ring cell lie at another place of it each time, so that all ring cells are written
/// before any place is written again. Lines that another processor has read a moment ago are slow to write: each must
/// be taken out of its cache first.
///
/// Owner    the group is the caller's and outlives the ring.
/// Threads  one at a time; on all ranks the same steps in the same order.
/// Errors   waits throw what Group throws.
class Ring {
 public:
  explicit Ring(Group& group) : group_(group) {}

  std::size_t cell_bytes() const { return group_.layout().ring_cell_bytes(); }
  int size() const { return group_.size(); }
  int rank() const { return group_.rank(); }

  /// Takes the next `count` steps, with pieces of at most `bytes` bytes, and returns the first one. For each of them
  /// every rank must then publish done(), and each of filled() and reduced() that another rank waits for.
  std::uint64_t take_steps(std::size_t count, std::size_t bytes);
  std::uint64_t take_steps(std::size_t count) { return take_steps(count, cell_bytes()); }

  /// `rank`'s ring cell of a step that was taken last.
  std::byte* cell(int rank, std::uint64_t step) const {
    return group_.ring_cell(rank, step % Layout::kRingCells) + step / Layout::kRingCells % parts_ * stride_;
  }

  /// Waits until no rank reads what this rank's ring cell of `step` held before. Throws also if the group has ended.
  void wait_free(std::uint64_t step);
  void wait_filled(int peer, std::uint64_t step) { group_.wait(peer, group_.fields(peer).progress.filled, step); }
  void wait_reduced(int peer, std::uint64_t step) { group_.wait(peer, group_.fields(peer).progress.reduced, step); }
  void wait_done(int peer, std::uint64_t step) { group_.wait(peer, group_.fields(peer).progress.done, step); }

  void filled(std::uint64_t step) { group_.publish(group_.own().progress.filled, step); }
  void reduced(std::uint64_t step) { group_.publish(group_.own().progress.reduced, step); }
  void done(std::uint64_t step) { group_.publish(group_.own().progress.done, step); }

 private:
  Group& group_;
  std::uint64_t next_ = 1;
  std::size_t stride_ = 0, parts_ = 1;  ///< of a ring cell, for pieces of this size
};

}  // namespace runjob::runtime
