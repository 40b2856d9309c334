#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "base/unique_handle.hpp"
#include "runtime/collectives/shm/offset_allocator.hpp"

namespace runjob::runtime {

/// Memory for a user's buffers that all ranks of a host can read and write. It lies behind the segment in the segment's file, one
/// window for each rank, from which that rank allocates alone: nothing needs to be alike on the ranks. Windows are as large as
/// the host's memory; a page takes memory when it is first written, and large free parts are given back.
///
/// Life     shared by the backends, a job's and its process sets', and the memory that was allocated, which stays valid when they are gone.
/// Threads  any.
/// Fork     a child shares the window with its parent, and must not free anything of it.
/// Source   the symmetric heap of OpenSHMEM 1.5, section 6, without its rule that all ranks allocate alike.
class SymmetricHeap {
 public:
  /// How large each of `size` windows should be; 0 where a limit of this process forbids files or mappings of such a size. Not a power
  /// of two: AMD's processors find a line in their first cache by a hash of bits 12 to 27 of its address, so that buffers a multiple of
  /// 256 MiB apart put each other out of it.
  /// Source  M. Lipp et al., "Take A Way: Exploring the Security Implications of AMD's Cache Way Predictors", 2020, section 4.
  static std::size_t window_bytes(int size);

  /// `file`: a descriptor of the segment, whose windows begin at `first_byte`. Maps nothing yet.
  SymmetricHeap(UniqueFd file, std::size_t first_byte, std::size_t window, int rank, int size);
  ~SymmetricHeap();
  SymmetricHeap(const SymmetricHeap&) = delete;
  SymmetricHeap& operator=(const SymmetricHeap&) = delete;

  /// Page-aligned; null when there is no room, or the windows cannot be mapped. The contents are anything.
  void* allocate(std::size_t bytes);
  /// False when `memory` is not what allocate() returned.
  bool free(void* memory);

  /// Where in this rank's window these bytes are; nullopt when they are not all in what allocate() has given out so far.
  std::optional<std::size_t> offset_of(const void* memory, std::size_t bytes) const;

  /// Maps the windows, so that at() may be called, unless that cannot be. allocate() does it too.
  void map_others();
  bool is_mapped() const;
  /// Bytes of `rank`'s window, as this process sees them.
  /// Errors  Error(kProtocol) when they are not in it; Error(kSystem).
  std::byte* at(int rank, std::size_t offset, std::size_t bytes);

  /// A backend uses the other ranks' windows, until it says that it does not any more; when the last one has said so, nothing of
  /// theirs is kept here, and at() must not be called again.
  void begin_use();
  void end_use();

 private:
  bool map() REQUIRES(mutex_);
  void forget_others() REQUIRES(mutex_);
  std::byte* window_of(int rank) const { return base_ + static_cast<std::size_t>(rank) * window_; }
  bool open_window(int rank, std::size_t end) REQUIRES(mutex_);
  void give_back() REQUIRES(mutex_);

  const std::size_t first_byte_, window_;
  const int rank_, size_;

  mutable Mutex mutex_;
  UniqueFd file_ GUARDED_BY(mutex_);  ///< until it is mapped
  OffsetAllocator allocator_ GUARDED_BY(mutex_);
  std::size_t kept_ GUARDED_BY(mutex_) = 0;  ///< bytes that were freed, but not given back
  int users_ GUARDED_BY(mutex_) = 0;         ///< backends
  bool forgotten_ GUARDED_BY(mutex_) = false;
  std::byte* base_ = nullptr;  ///< of all windows; set once, under the mutex
  /// How much of each window may be accessed here, from its beginning.
  std::vector<std::size_t> open_ GUARDED_BY(mutex_);
};

}  // namespace runjob::runtime
