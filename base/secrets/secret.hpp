#pragma once

#include <array>
#include <memory>
#include <string>

namespace runjob {

/// 32 secret bytes, such as a key, on a page of their own. They are wiped when the object is destroyed. Core dumps do
/// not have them. Neither does swap, unless this process has reached its limit of locked memory.
/// Owner    each object has bytes of its own; a copy is another page, which costs some system calls. A move takes the
///          page along: what is left may only be assigned to or destroyed.
/// Threads  a value: any, but not at the same time as a change.
/// Errors   Error(kSystem) from the constructors if there is no memory.
/// Source   MADV_DONTDUMP in madvise(2), mlock(2), explicit_bzero in bzero(3).
class Secret {
 public:
  using Bytes = std::array<unsigned char, 32>;

  Secret();  ///< zero bytes
  /// A copy. If `bytes` are secret already, the caller wipes them.
  Secret(const Bytes& bytes) : Secret() { *bytes_ = bytes; }  // NOLINT(google-explicit-constructor)
  Secret(const Secret& other) : Secret(*other.bytes_) {}
  Secret(Secret&& other) noexcept = default;
  Secret& operator=(const Secret& other) {
    if (!bytes_) return *this = Secret(other);
    *bytes_ = *other.bytes_;
    return *this;
  }
  Secret& operator=(Secret&& other) noexcept = default;

  const Bytes& bytes() const { return *bytes_; }
  Bytes& bytes() { return *bytes_; }
  operator const Bytes&() const { return *bytes_; }  // NOLINT(google-explicit-constructor)
  /// Not in constant time, so an answer to another process must not depend on it.
  bool operator==(const Secret& other) const { return *bytes_ == *other.bytes_; }

 private:
  struct Free {
    void operator()(Bytes* bytes) const;
  };

  std::unique_ptr<Bytes, Free> bytes_;  // null only after a move
};

/// Overwrites and empties a text that held a secret. Copies of the text are the caller's to wipe.
void wipe(std::string& text);

}  // namespace runjob
