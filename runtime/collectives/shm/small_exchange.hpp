#pragma once

#include "runtime/collectives/prefetch.hpp"
#include "runtime/collectives/shm/copy_table.hpp"
#include "runtime/collectives/shm/group.hpp"
#include "runtime/collectives/shm/streaming_copy.hpp"

namespace runjob::runtime {

/// Small messages, each rank's to all others, in one step: a rank writes its message and then its flag, and the others look
/// at the flag and read the message. A message of up to 56 bytes lies in the flag's own cache line, a longer one in a cell.
///
/// Two places for each rank, used in turn, need no second step that says "read": every rank gives a flag in every step,
/// if only to say that it has read everything of the step before; and a rank writes its message of step t, over that of
/// t - 2, only when all have given t - 1.
/// Source  the lag argument of DeepSpeed's csrc/cpu/comm/shm.cpp; the payload in the flag's line is Open MPI's coll/xhc.
/// Threads  one; on all ranks the same steps in the same order.
class SmallExchange {
 public:
  explicit SmallExchange(Group& group) : group_(group) {}

  /// What is small; messages may be larger, up to the layout's most_cell_bytes().
  std::size_t most_bytes() const { return group_.layout().cell_bytes(); }

  /// Begins the next step. Returns where this rank's message of `bytes` bytes goes; null when it has none (0).
  std::byte* begin(std::size_t bytes);
  /// The message is whole. Every rank calls it in every step.
  void give();
  /// All of that: a step whose message is the `bytes` bytes at `from`.
  void send(const void* from, std::size_t bytes, CopyFunction copier) {
    std::byte* to = begin(bytes);
    copier(to, static_cast<const std::byte*>(from), bytes);
    give();
  }
  void send(const void* from, std::size_t bytes) { send(from, bytes, copy(bytes)); }
  /// Rank `peer`'s message of `bytes` bytes, which may be this rank; stays until the next give().
  const std::byte* take(int peer, std::size_t bytes);

  /// A hint: the caller has seen that every rank has given the step that was begun last.
  void all_have_given() { complete_ = step_; }

  /// What copies a message of `bytes` bytes best to where it goes.
  CopyFunction copy(std::size_t bytes) { return copies_.is_streamed(bytes) ? &streaming_copy : &plain_copy; }
  /// Which learns that from some messages.
  CopyTable& copies() { return copies_; }

  // For messages that say their length themselves: of the step that was begun last.
  std::uint64_t step() const { return step_; }
  const Step& given(int rank) const { return flag(rank).given; }
  std::byte* line(int rank) const { return flag(rank).payload; }
  std::byte* cell(int rank, std::size_t bytes) const { return group_.cell(rank, step_, bytes); }
  /// This rank's flag of the next step is about to be written, and then a cell, with a message of `bytes` bytes; 0 for none.
  void expect_next(std::size_t bytes) {
    FlagLine& next = group_.own().flags[(step_ + 1) % RankWords::kFlags];
    prefetch_to_write(next.payload, kCacheLineBytes);
    if (bytes == 0 || copies_.is_streamed(bytes)) return;
    prefetch_to_write(group_.cell(group_.rank(), step_ + 1, bytes), bytes);
  }
  /// Whether `peer` has given the step after that.
  bool has_begun_next(int peer) const {
    return group_.words(peer).flags[(step_ + 1) % RankWords::kFlags].given.load(std::memory_order_seq_cst) > step_;
  }

 private:
  FlagLine& flag(int rank) const { return group_.words(rank).flags[step_ % RankWords::kFlags]; }
  std::byte* place(int rank, std::size_t bytes) const;

  Group& group_;
  CopyTable copies_;
  std::uint64_t step_ = 0;
  std::uint64_t complete_ = 0;  ///< the last one that is known to be given by all
};

}  // namespace runjob::runtime
