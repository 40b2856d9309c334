#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

/// The memory that tensors lie in: its kind, and an owner of buffers in it.
namespace runjob::runtime {

/// The kinds of memory. All ranks must agree on the kind of an operation's tensors.
enum class MemoryKind : std::uint8_t {
  kHost = 0,   ///< the processor reads and writes it
  kDevice = 1  ///< only a device's backend reads and writes it; the processor must not
};

constexpr bool is_memory_kind(int number) {
  return number == static_cast<int>(MemoryKind::kHost) || number == static_cast<int>(MemoryKind::kDevice);
}

/// "host memory", "device memory"
constexpr std::string_view to_string(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kHost:
      return "host memory";
    case MemoryKind::kDevice:
      return "device memory";
  }
  return "";
}

/// The device of a rank's tensors and the stream that orders the work on them. They may differ between the ranks. Both
/// are unused for host memory.
struct Device {
  int ordinal = -1;
  void* stream = nullptr;  ///< as the device's backend understands it; lent until the operation is done

  bool operator==(const Device&) const = default;
};

/// The place of one rank's tensors.
struct Memory {
  MemoryKind kind = MemoryKind::kHost;
  Device device = {};
};

/// Gives out buffers of one kind of memory.
/// Owner    shared by the backend and by the buffers that were allocated, which stay valid when the backend is
///          destroyed.
/// Threads  any.
class BufferAllocator {
 public:
  virtual ~BufferAllocator() = default;
  /// At least `bytes` bytes with undefined contents; null when there is no room.
  virtual void* allocate(std::size_t bytes) = 0;
  /// The reason why allocate() has returned null, for people; empty for the usual one.
  virtual std::string shortage(std::size_t) const { return {}; }
  /// Frees memory of allocate(). Returns false for any other address.
  virtual bool free(void* memory) = 0;
  /// Sets `bytes` bytes of memory of allocate() to zero, before all later calls of the backend that gives the memory.
  virtual void clear(void* memory, std::size_t bytes) { std::memset(memory, 0, bytes); }
};

/// A buffer: memory of an allocator, or of the host without one. Move-only; empty by default.
class Buffer {
 public:
  Buffer() = default;
  /// A buffer of the host. Errors  std::bad_alloc.
  explicit Buffer(std::size_t bytes) : memory_(new std::byte[bytes]) {}
  /// A buffer of `allocator`, or an empty one when that has no room.
  Buffer(std::shared_ptr<BufferAllocator> allocator, std::size_t bytes)
      : allocator_(std::move(allocator)), memory_(static_cast<std::byte*>(allocator_->allocate(bytes))) {}
  ~Buffer() { reset(); }
  Buffer(Buffer&& other) noexcept
      : allocator_(std::move(other.allocator_)), memory_(std::exchange(other.memory_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    reset();
    allocator_ = std::move(other.allocator_);
    memory_ = std::exchange(other.memory_, nullptr);
    return *this;
  }

  std::byte* get() const { return memory_; }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  void reset() {
    if (memory_ == nullptr) return;
    if (allocator_) {
      allocator_->free(memory_);
    } else {
      delete[] memory_;
    }
    memory_ = nullptr;
  }

  std::shared_ptr<BufferAllocator> allocator_;
  std::byte* memory_ = nullptr;
};

}  // namespace runjob::runtime
