#pragma once

#include <fcntl.h>

#include "runtime/collectives/shm/memory/segment.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

/// Ranks as threads of this process that have symmetric memory: each maps all windows for itself, as processes do.
namespace runjob::runtime {

/// What a rank works with.
struct HeapRank {
  Channels& channels;
  SymmetricHeap& heap;

  int rank() const { return channels.group.rank(); }
  int size() const { return channels.group.size(); }
  /// Memory for `count` values in this rank's window.
  template <class T>
  T* make(std::size_t count) const {
    return static_cast<T*>(heap.allocate(count * sizeof(T)));
  }
};

struct HeapOptions {
  bool cma = false;
  std::optional<Algorithm> algorithm = {};
  Patience patience = {};
  std::size_t window = 64u << 20;
};

inline UniqueFd copy_of(const Segment& segment) {
  return UniqueFd(::fcntl(segment.descriptor(), F_DUPFD_CLOEXEC, 0));
}

/// As run_threads(). `options_of_rank`: may differ among the ranks.
inline std::vector<std::string> run_heap_threads(const Layout& layout,
                                                 const std::function<HeapOptions(int rank)>& options_of_rank,
                                                 const std::function<void(HeapRank)>& body) {
  const std::size_t window = options_of_rank(0).window;
  const Segment segment = Segment::create(layout.bytes(), window * static_cast<std::size_t>(layout.size()));
  std::vector<std::string> errors(static_cast<std::size_t>(layout.size()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < layout.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const HeapOptions options = options_of_rank(rank);
        auto heap = std::make_shared<SymmetricHeap>(copy_of(segment), layout.bytes(), window, rank, layout.size());
        Channels channels(segment.data(), layout, options_of(rank, options.patience),
                          {.heap = heap, .cma = options.cma},
                          {.algorithm = options.algorithm, .farewell = std::chrono::seconds(60)});
        body({channels, *heap});
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline std::vector<std::string> run_heap_threads(const Layout& layout, const HeapOptions& options,
                                                 const std::function<void(HeapRank)>& body) {
  return run_heap_threads(
      layout, [&](int) { return options; }, body);
}

/// Where the ranks' buffers are and what they may do.
struct Placement {
  bool on_even, on_odd;  ///< whether ranks of such numbers have symmetric memory
  Algorithm algorithm;   ///< of ordinary memory

  bool is_symmetric(int rank) const { return rank % 2 == 0 ? on_even : on_odd; }
  /// Whether no ring cell is needed.
  bool is_direct() const { return (on_even && on_odd) || algorithm == kCma; }
};
inline constexpr Placement kSymmetric{true, true, kPipeline}, kOrdinary{false, false, kCma}, kMixed{true, false, kCma},
    kMixedWithoutCma{true, false, kPipeline};

/// A copy of a buffer, in `heap`, or in ordinary memory when that is null.
class Placed {
 public:
  Placed(SymmetricHeap* heap, const void* data, std::size_t bytes)
      : heap_(heap), memory_(heap == nullptr ? ::operator new(bytes) : heap->allocate(bytes)) {
    if (bytes > 0) std::memcpy(memory_, data, bytes);
  }
  ~Placed() {
    if (heap_ == nullptr) {
      ::operator delete(memory_);
    } else {
      heap_->free(memory_);
    }
  }
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  std::byte* get() const { return static_cast<std::byte*>(memory_); }

 private:
  SymmetricHeap* heap_;
  void* memory_;
};

/// run_heap_threads() with such buffers; `body` gets the heap to put them into.
inline std::vector<std::string> run_placed(const Layout& layout, const Placement& placement,
                                           const std::function<void(Channels&, SymmetricHeap* heap)>& body) {
  return run_heap_threads(layout, {.cma = placement.algorithm == kCma, .algorithm = placement.algorithm},
                          [&](HeapRank rank) {
                            rank.heap.map_others();
                            body(rank.channels, placement.is_symmetric(rank.rank()) ? &rank.heap : nullptr);
                          });
}

/// Whether the calls so far used no ring cell.
inline bool used_no_ring_cell(Channels& channels) {
  return channels.group.own().progress.filled.load() == 0;
}

}  // namespace runjob::runtime
