#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <sys/types.h>
#include <vector>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/remembered_ways.hpp"
#include "runtime/collectives/shm/ring.hpp"
#include "runtime/collectives/shm/route_table.hpp"
#include "runtime/collectives/shm/small_exchange.hpp"
#include "runtime/collectives/shm/stage.hpp"
#include "runtime/collectives/shm/streaming_copy.hpp"
#include "runtime/collectives/shm/symmetric_heap.hpp"

namespace runjob::runtime {

/// What PeerBuffers works with.
struct PeerOptions {
  std::shared_ptr<SymmetricHeap> heap = nullptr;  ///< none: all buffers are ordinary
  std::vector<int> heap_ranks = {};               ///< by rank: its number in the heap; empty: the same
  /// Whether ordinary memory of other ranks may be read through the kernel (cross memory attach); it is when all ranks say so and may.
  bool cma = false;
  std::optional<Way> way = {};      ///< for tests: of all messages that may take it, the same on all ranks
  std::string ways_directory = {};  ///< where jobs leave what they have found out; empty: nowhere
  /// How long a rank whose message failed waits for the others to stop writing into its buffers.
  std::chrono::milliseconds farewell{100};
};

/// Large messages, through the ring of slots or without it: ranks read, and write, each other's buffers where they lie. Before each
/// message all ranks say where their buffers are, and so all come to the same answer whether that is possible: it is when all buffers
/// are symmetric memory, or when all ranks may read the others' memory and that has turned out to be faster than the ring.
///
/// Threads  one; on all ranks the same messages in the same order.
/// Errors   as Group; Error(kSystem) and Error(kPeerLost) naming the rank whose memory cannot be read.
class PeerBuffers {
 public:
  enum class Route {
    kOneStep,  ///< through cells, as small messages
    kRing,     ///< through the slots
    kRead,     ///< view() and fetch() may be called
    kWrite     ///< pointers to all ranks' input and output as well; allreduce and broadcast only
  };

  /// A rank's part of a message.
  struct Offer {
    Kind kind = Kind::kAllreduce;
    std::size_t bytes = 0;  ///< of the message; the same on all ranks
    const void* input = nullptr;
    std::size_t input_bytes = 0;
    void* output = nullptr;                    ///< allreduce's and broadcast's, since others read or write it too
    std::size_t output_bytes = 0;              ///< 0 for none
    std::span<const std::size_t> splits = {};  ///< what others need to know besides: one number for each rank
    /// What this rank copies out of others' slots, unless it is the input too; the time of a trial has reading it once in it.
    std::span<const std::byte> copied_out = {};
    const Call* call = nullptr;  ///< is told the route
  };

  PeerBuffers(Group& group, SmallExchange& small, Ring& ring, PeerOptions options);
  ~PeerBuffers();
  PeerBuffers(const PeerBuffers&) = delete;
  PeerBuffers& operator=(const PeerBuffers&) = delete;

  /// Agrees on a route and calls one of the three: `in_one_step` with what writes the message, `by_ring` with what writes slots and
  /// output, `directly` with the route. When that has returned on all ranks, nobody touches another one's buffers any more; when it has
  /// thrown, nobody does a moment later who is still running.
  template <class InOneStep, class ByRing, class Directly>
  void run(const Offer& offer, InOneStep in_one_step, ByRing by_ring, Directly directly) {
    const Route route = agree(offer);
    if (offer.call != nullptr) offer.call->tell_stage(shm_stage(offer.kind), algorithm(route));
    if (route == Route::kWrite) return write(directly);
    const auto start = std::chrono::steady_clock::now();
    if (route == Route::kOneStep) {
      in_one_step(copies().in);
    } else if (route == Route::kRing) {
      by_ring(copies());
    } else {
      directly(route);
    }
    if (is_trial_) read_once(offer.copied_out);
    // The others may still read this rank's memory; and so that times of all ways are comparable, none is without this.
    if (is_trial_ || route == Route::kRead) finish(ring_.take_steps(1));
    if (is_trial_ && group_.rank() == 0)
      table_.add(offer.kind, offer.bytes, way_, std::chrono::steady_clock::now() - start);
  }

  // For `directly`. Offsets are bytes from the beginning of a rank's buffer.

  /// `bytes` of `rank`'s input: where they lie, or copied to `room`.
  const std::byte* view_input(int rank, std::size_t offset, std::size_t bytes, std::byte* room) const;
  void fetch_input(int rank, std::size_t offset, std::size_t bytes, std::byte* to) const;
  void fetch_output(int rank, std::size_t offset, std::size_t bytes, std::byte* to) const;
  /// With kWrite.
  const std::byte* input(int rank, std::size_t bytes) const;
  std::byte* output(int rank, std::size_t bytes) const;
  /// `rank`'s offer's splits, at `index`.
  std::size_t split(int rank, int index) const;

  /// Room of this object's own, lent until the next call.
  std::byte* scratch(std::size_t bytes);

 private:
  /// What a rank says of its part. Fits the line of its flag, but for splits.
  struct Place {
    std::uint64_t input = 0, output = 0;  ///< offsets in its window, when it is symmetric
    std::uint64_t input_address = 0, output_address = 0;
    bool is_symmetric = false;
    bool has_mapped = false;  ///< it can use others' windows
    // Rank 0's:
    Way way = Way::kSlots;  ///< what all do unless the buffers are symmetric
    bool is_trial = false;  ///< it takes the time
    bool is_probe = false;  ///< whether memory can be read is to be found out first
  };

  Route agree(const Offer& offer);
  Copies copies() const;
  static void read_once(std::span<const std::byte> output);
  Ways possible_ways(const Offer& offer) const;
  const char* algorithm(Route route) const;
  Place place_of(const Offer& offer);
  void choose_way(const Offer& offer, Place& place);
  bool may_read(const Offer& offer) const;
  bool is_settled_without_others(const Place& own) const;
  Route decide(const Offer& offer);
  bool probe();
  bool can_read_all(const std::vector<const std::byte*>& tokens);
  template <class Directly>
  void write(Directly directly) {
    const std::uint64_t step = ring_.take_steps(1);
    try {
      directly(Route::kWrite);
      finish(step);
    } catch (...) {
      withdraw(step);
      throw;
    }
  }
  void finish(std::uint64_t step);
  void withdraw(std::uint64_t step);
  std::byte* in_window(int rank, std::size_t offset, std::size_t bytes) const;
  void copy(int rank, std::uint64_t window_offset, std::uint64_t address, std::size_t bytes, std::byte* to) const;

  Group& group_;
  SmallExchange& small_;
  Ring& ring_;
  const PeerOptions options_;
  RouteTable table_;
  const RememberedWays remembered_;
  const std::size_t least_read_bytes_;  ///< of messages whose ordinary memory may be read
  enum class Cma { kUnknown, kNo, kYes } cma_ = Cma::kUnknown;
  std::vector<pid_t> processes_;  ///< by rank, after the probe
  std::uint64_t token_ = 0;       ///< what others read from here in the probe

  // Of the message that is agreed on.
  std::vector<Place> places_;        ///< by rank
  std::vector<std::size_t> splits_;  ///< by rank, then by index
  bool by_pointer_ = false;          ///< all buffers are symmetric
  std::optional<Way> settled_;       ///< its way, when rank 0 need not be asked
  Way way_ = Way::kSlots;            ///< unless all buffers are symmetric
  bool is_trial_ = false;            ///< its time decides about later ones

  std::unique_ptr<std::byte[]> scratch_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace runjob::runtime
