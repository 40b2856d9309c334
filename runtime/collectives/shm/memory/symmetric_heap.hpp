#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "base/unique_handle.hpp"
#include "runtime/collectives/memory.hpp"
#include "runtime/collectives/shm/memory/offset_allocator.hpp"

namespace runjob::runtime {

/// Memory for users' buffers that all ranks of a host can read and write. It lies behind the segment in the segment's
/// file, one window for each rank, from which only that rank allocates; the ranks need not allocate alike. Windows are
/// as large as the host's memory. A page takes memory when it is first written, and large free parts are given back.
///
/// Owner    shared by the backends, those of a job and of its process sets, and by the allocated memory, which stays
///          valid when the backends are gone.
/// Threads  any.
/// Fork     a child shares the window with its parent, and must not free anything of it.
/// Source   the symmetric heap of OpenSHMEM 1.5, section 6, without its rule that all ranks allocate alike.
class SymmetricHeap : public BufferAllocator {
 public:
  /// The size of each of `size` windows; 0 if a limit of this process forbids files or mappings of such a size. It is
  /// no power of two: AMD's processors find a line in their first cache by a hash of bits 12 to 27 of its address, so
  /// that buffers at a distance of a multiple of 256 MiB evict each other.
  /// Source  M. Lipp et al., "Take A Way: Exploring the Security Implications of AMD's Cache Way Predictors", 2020,
  ///         section 4.
  static std::size_t window_bytes(int size);

  /// `file`: a descriptor of the segment, whose windows begin at `first_byte`. Maps nothing yet.
  SymmetricHeap(UniqueFd file, std::size_t first_byte, std::size_t window, int rank, int size);
  ~SymmetricHeap() override;
  SymmetricHeap(const SymmetricHeap&) = delete;
  SymmetricHeap& operator=(const SymmetricHeap&) = delete;

  /// Returns page-aligned memory with undefined contents; null if there is no room or the windows cannot be mapped.
  void* allocate(std::size_t bytes) override;
  /// Frees memory of this rank. False if allocate() has not returned `memory`.
  bool free(void* memory) override;

  /// The offset of these bytes in this rank's window; nullopt if some of them are outside the part that allocate() has
  /// opened.
  std::optional<std::size_t> offset_of(const void* memory, std::size_t bytes) const;

  /// Tries to map the windows, so that at() may be called; allocate() does so as well. is_mapped() gives the result.
  void map_others();
  bool is_mapped() const;
  /// The address of bytes of `rank`'s window in this process.
  /// Errors  Error(kProtocol) if they are outside the window; Error(kSystem).
  std::byte* at(int rank, std::size_t offset, std::size_t bytes);

  /// A backend calls begin_use() before it uses the other ranks' windows and end_use() afterwards. After the last
  /// end_use() they are unmapped, and at() must not be called again.
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
  UniqueFd file_ GUARDED_BY(mutex_);  ///< until the windows are mapped
  OffsetAllocator allocator_ GUARDED_BY(mutex_);
  std::size_t kept_ GUARDED_BY(mutex_) = 0;  ///< bytes that were freed but not given back
  int users_ GUARDED_BY(mutex_) = 0;         ///< backends between begin_use() and end_use()
  bool forgotten_ GUARDED_BY(mutex_) = false;
  std::byte* base_ = nullptr;  ///< the beginning of all windows; set once, under the mutex
  /// By rank: how much of its window, from the beginning, this process may access.
  std::vector<std::size_t> open_ GUARDED_BY(mutex_);
};

}  // namespace runjob::runtime
