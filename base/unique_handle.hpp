#pragma once

#include <unistd.h>
#include <utility>

namespace runjob {

/// Sole owner of a C handle: `close` is called on it once, at the end. Move-only, no implicit conversion.
template <class T, auto close, T invalid>
class UniqueHandle {
 public:
  UniqueHandle() = default;
  explicit UniqueHandle(T handle) : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(std::exchange(other.handle_, invalid)) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    reset(std::exchange(other.handle_, invalid));
    return *this;
  }
  ~UniqueHandle() { reset(); }

  T get() const { return handle_; }
  explicit operator bool() const { return handle_ != invalid; }
  [[nodiscard]] T release() { return std::exchange(handle_, invalid); }
  void reset(T handle = invalid) {
    const T old = std::exchange(handle_, handle);
    if (old != invalid) static_cast<void>(close(old));
  }

 private:
  T handle_ = invalid;
};

using UniqueFd = UniqueHandle<int, ::close, -1>;

}  // namespace runjob
