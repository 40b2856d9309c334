#pragma once

#include "runtime/collectives/shm/group.hpp"
#include "runtime/collectives/shm/tuning/prefetch.hpp"
#include "runtime/collectives/shm/tuning/stores_tuner.hpp"
#include "runtime/collectives/shm/tuning/streaming_copy.hpp"

namespace runjob::runtime {

/// The exchange of small messages, each rank's to all others, in one step. A rank writes its message and then its flag;
/// the others look at the flag and read the message. A message of up to 56 bytes lies in the cache line of the flag, a
/// longer one in a cell.
///
/// Each rank has two flags, used in turn, so that no second step has to report that a message was read. Every rank
/// gives its flag in every step, with or without a message, and thereby reports that it has read all messages of the
/// step before. A rank writes its message of step t over that of step t - 2 only after all ranks have given step t - 1.
///
/// Owner    the group is the caller's and outlives the exchange.
/// Threads  one at a time; on all ranks the same steps in the same order.
/// Errors   begin() and take() throw what Group's waits throw.
/// Source   the lag argument of DeepSpeed's csrc/cpu/comm/shm.cpp; the payload in the line of the flag is Open MPI's
///          coll/xhc.
class SmallExchange {
 public:
  explicit SmallExchange(Group& group) : group_(group) {}

  /// The size of the largest small message. A caller may exchange larger ones, up to the layout's most_cell_bytes().
  std::size_t most_bytes() const { return group_.layout().cell_bytes(); }

  /// Begins the next step. Returns the place for this rank's message of `bytes` bytes; null for 0 bytes.
  std::byte* begin(std::size_t bytes);
  /// Publishes the message. Every rank calls it in every step.
  void give();
  /// Runs begin() and give() with a copy of the `bytes` bytes at `from`.
  void send(const void* from, std::size_t bytes, CopyFunction copier) {
    std::byte* to = begin(bytes);
    copier(to, static_cast<const std::byte*>(from), bytes);
    give();
  }
  void send(const void* from, std::size_t bytes) { send(from, bytes, copy(bytes)); }
  /// Waits for the message of `bytes` bytes of rank `peer`, which may be this rank. It stays until the next give().
  const std::byte* take(int peer, std::size_t bytes);

  /// A hint: the caller has seen that every rank has given the current step.
  void all_have_given() { complete_ = step_; }

  /// The function that copies a message of `bytes` bytes into shared memory fastest.
  CopyFunction copy(std::size_t bytes) { return copy_with(stores_.stores(bytes)); }
  /// The tuner behind copy(), which learns from the times of some messages.
  StoresTuner& stores() { return stores_; }

  // For messages that carry their length themselves. All of these are about the current step: the one begun last.
  std::uint64_t step() const { return step_; }
  const Step& given(int rank) const { return flag(rank).given; }
  std::byte* line(int rank) const { return flag(rank).payload; }
  std::byte* cell(int rank, std::size_t bytes) const { return group_.cell(rank, step_, bytes); }
  /// A hint: this rank is about to write its flag of the next step, and a cell with `bytes` bytes; 0 for no cell.
  void expect_next(std::size_t bytes) {
    FlagLine& next = group_.own().flags[(step_ + 1) % RankFields::kFlags];
    prefetch_to_write(next.payload, kCacheLineBytes);
    if (bytes == 0 || stores_.stores(bytes) == Stores::kStreaming) return;
    prefetch_to_write(group_.cell(group_.rank(), step_ + 1, bytes), bytes);
  }
  /// True if `peer` has given the step after the current one.
  bool has_begun_next(int peer) const {
    return group_.fields(peer).flags[(step_ + 1) % RankFields::kFlags].given.load(std::memory_order_seq_cst) > step_;
  }

 private:
  FlagLine& flag(int rank) const { return group_.fields(rank).flags[step_ % RankFields::kFlags]; }
  std::byte* message(int rank, std::size_t bytes) const;

  Group& group_;
  StoresTuner stores_;
  std::uint64_t step_ = 0;
  std::uint64_t complete_ = 0;  ///< the last step that all ranks are known to have given
};

}  // namespace runjob::runtime
