#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/mutex.hpp"

namespace runjob {

/// False with the sanitizers: nothing is kept, so that they find the use of an object that is gone.
#if defined(RUNJOB_SANITIZED)
inline constexpr bool kKeepsMemory = false;
#else
inline constexpr bool kKeepsMemory = true;
#endif

/// The memory of objects of one type that are made and destroyed again and again: that of a destroyed object is kept
/// for the next one, which then takes nothing from the heap.
/// Owner    shared: its maker and the objects in its memory; any of them may go first.
/// Threads  any.
class KeptBlocks {
 public:
  KeptBlocks() = default;
  ~KeptBlocks();
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;

  /// `bytes`: equal in all calls. Errors  std::bad_alloc.
  void* take(std::size_t bytes);
  void give_back(void* block) noexcept;

 private:
  struct Block {
    Block* next;
  };
  Mutex mutex_;
  Block* kept_ GUARDED_BY(mutex_) = nullptr;  ///< the last one that was given back
};

/// Lends the memory to std::allocate_shared().
template <class T>
class KeptBlocksAllocator {
 public:
  using value_type = T;
  explicit KeptBlocksAllocator(std::shared_ptr<KeptBlocks> blocks) : blocks_(std::move(blocks)) {}
  template <class Other>
  explicit KeptBlocksAllocator(const KeptBlocksAllocator<Other>& other) : blocks_(other.blocks()) {}

  T* allocate(std::size_t count) { return static_cast<T*>(blocks_->take(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t /*count*/) noexcept { blocks_->give_back(memory); }
  const std::shared_ptr<KeptBlocks>& blocks() const { return blocks_; }
  template <class Other>
  bool operator==(const KeptBlocksAllocator<Other>& other) const {
    return blocks_ == other.blocks();
  }

 private:
  std::shared_ptr<KeptBlocks> blocks_;
};

/// std::make_shared() in the memory of `blocks`, which serves no other type.
template <class T, class... Arguments>
std::shared_ptr<T> make_shared_in(const std::shared_ptr<KeptBlocks>& blocks, Arguments&&... arguments) {
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  return std::allocate_shared<T>(KeptBlocksAllocator<T>(blocks), std::forward<Arguments>(arguments)...);
}

}  // namespace runjob
