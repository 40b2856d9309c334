#pragma once

#include <array>
#include <memory>
#include <string>

namespace runjob {

/// 32 secret bytes, such as a key, on a page of their own. They are wiped at the end, and neither core dumps nor swap
/// have them.
/// Threads  a value.
/// Errors   Error(kSystem) from the constructors if there is no memory.
/// Source   MADV_DONTDUMP in madvise(2), mlock(2), explicit_bzero in bzero(3).
class Secret {
 public:
  using Bytes = std::array<unsigned char, 32>;

  Secret();  ///< zero bytes
  /// A copy; whoever has made `bytes` wipes them if they are secret already.
  Secret(const Bytes& bytes) : Secret() { *bytes_ = bytes; }  // NOLINT(google-explicit-constructor)
  Secret(const Secret& other) : Secret(*other.bytes_) {}
  Secret& operator=(const Secret& other) {
    *bytes_ = *other.bytes_;
    return *this;
  }

  const Bytes& bytes() const { return *bytes_; }
  Bytes& bytes() { return *bytes_; }
  operator const Bytes&() const { return *bytes_; }  // NOLINT(google-explicit-constructor)
  bool operator==(const Secret& other) const { return *bytes_ == *other.bytes_; }

 private:
  struct Free {
    void operator()(Bytes* bytes) const;
  };

  std::unique_ptr<Bytes, Free> bytes_;  // never null
};

/// Overwrites a text that has had a secret in it, and empties it.
void wipe(std::string& text);

}  // namespace runjob
