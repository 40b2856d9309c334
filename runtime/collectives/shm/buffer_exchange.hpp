#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <sys/types.h>
#include <vector>

#include "runtime/collectives/shm/memory/symmetric_heap.hpp"
#include "runtime/collectives/shm/small_exchange.hpp"
#include "runtime/collectives/shm/tuning/algorithm.hpp"

namespace runjob::runtime {

struct BufferOptions {
  std::shared_ptr<SymmetricHeap> heap = nullptr;  ///< null: all buffers are ordinary memory
  std::vector<int> heap_ranks = {};               ///< by rank: its index in the heap; empty: equal to the rank
  bool cma = false;  ///< whether this rank may read other ranks' memory through the kernel (cross memory attach)
};

/// A rank's buffers of one message. Lent until the message is done on all ranks.
struct Buffers {
  const void* input = nullptr;
  std::size_t input_bytes = 0;
  void* output = nullptr;                    ///< only if other ranks read or write it
  std::size_t output_bytes = 0;              ///< 0 for none
  std::span<const std::size_t> splits = {};  ///< one value for each rank, which that rank needs; empty for none
};

/// How a message is moved, as rank 0 announces it with its addresses.
struct Choice {
  Algorithm algorithm = {};
  bool is_trial = false;    ///< the time of the message is measured
  bool probes_cma = false;  ///< the ranks find out first whether they can read each other's memory
};

/// The addresses of all ranks' buffers, and access to the other ranks' buffers. Before a message each rank announces
/// where its buffers are. If all of them are symmetric memory, every rank reaches them with ordinary loads and stores.
/// Otherwise a rank may copy from them through the kernel, if probe_cma() has shown that all ranks can.
///
/// Order    for each message announce(), then collect() or nothing; all ranks the same messages in the same order.
/// Owner    the group and the exchange are the caller's and outlive this object. The heap is shared.
/// Threads  one at a time.
/// Errors   throws what Group throws; Error(kSystem) and Error(kPeerLost) naming the rank whose memory cannot be read.
class BufferExchange {
 public:
  BufferExchange(Group& group, SmallExchange& small, BufferOptions options);
  BufferExchange(const BufferExchange&) = delete;
  BufferExchange& operator=(const BufferExchange&) = delete;

  /// True if an announcement with so many splits is a small message. It is not with some hundreds of ranks.
  bool fits(std::size_t splits) const;
  /// Announces this rank's buffers. `choice`: rank 0's is announced with them, the others' are ignored.
  void announce(const Buffers& buffers, const Choice& choice);
  /// True if the buffers that this rank has announced last are symmetric memory.
  bool own_are_symmetric() const { return own_are_symmetric_; }
  /// Receives the announcements of all ranks and returns rank 0's choice. A rank need not call it if it neither needs
  /// the others' addresses nor has symmetric buffers.
  Choice collect();
  /// True if all announced buffers are symmetric memory that all ranks have mapped; false before collect().
  bool all_are_symmetric() const { return all_are_symmetric_; }

  /// True if memory may be read through the kernel, as far as this rank knows.
  bool may_use_cma() const { return options_.cma && cma_ != Cma::kImpossible; }
  bool has_probed_cma() const { return cma_ != Cma::kUnknown; }
  /// Finds out whether every rank can read every other rank's memory, and returns the result, the same on all ranks.
  /// All ranks call it at the same place of their sequence of messages.
  bool probe_cma();

  // After collect(), if all buffers are symmetric or probe_cma() has returned true. Offsets are bytes from the
  // beginning of the rank's buffer.

  /// Returns a pointer to `bytes` of `rank`'s input: to the input itself, or to a copy in `room`.
  const std::byte* view_input(int rank, std::size_t offset, std::size_t bytes, std::byte* room) const;
  void fetch_input(int rank, std::size_t offset, std::size_t bytes, std::byte* to) const;
  void fetch_output(int rank, std::size_t offset, std::size_t bytes, std::byte* to) const;
  /// `rank`'s buffers themselves. Only if all buffers are symmetric.
  const std::byte* input(int rank, std::size_t bytes) const;
  std::byte* output(int rank, std::size_t bytes) const;
  /// The value at `index` of the splits that `rank` has announced.
  std::size_t split(int rank, int index) const;

  /// Memory of this object for copies, lent until the next call.
  std::byte* scratch(std::size_t bytes);

 private:
  /// Where a rank's buffers are. With a choice and without splits it fits the cache line of the rank's flag.
  struct Addresses {
    std::uint64_t input_offset = 0, output_offset = 0;  ///< in the rank's window, if it is symmetric memory
    std::uint64_t input = 0, output = 0;                ///< in the rank's process
    bool is_symmetric = false;
    bool has_mapped = false;  ///< the rank has mapped the others' windows
  };
  struct Announcement {
    Addresses addresses;
    Choice choice;
  };
  static_assert(sizeof(Announcement) <= FlagLine::kPayloadBytes);
  enum class Cma { kUnknown, kImpossible, kPossible };

  Addresses addresses_of(const Buffers& buffers) const;
  bool can_read_all(const std::vector<const std::byte*>& tokens);
  std::byte* in_window(int rank, std::size_t offset, std::size_t bytes) const;
  void copy(int rank, std::uint64_t window_offset, std::uint64_t address, std::size_t bytes, std::byte* to) const;

  Group& group_;
  SmallExchange& small_;
  const BufferOptions options_;
  Cma cma_ = Cma::kUnknown;
  std::vector<pid_t> processes_;  ///< by rank, after the probe
  std::uint64_t token_ = 0;       ///< the value that the other ranks read from here in the probe

  std::vector<Addresses> addresses_;  ///< by rank
  std::vector<std::size_t> splits_;   ///< by rank, then by index
  std::size_t splits_of_rank_ = 0;
  bool own_are_symmetric_ = false, all_are_symmetric_ = false;

  std::unique_ptr<std::byte[]> scratch_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace runjob::runtime
