#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sealed/noise_handshake.hpp"

/// A stream of bytes as sealed records: two bytes of length, big-endian, then that many bytes of ChaCha20-Poly1305,
/// with a counter as nonce. An attacker between the two ends cannot read, change, omit, repeat or move a byte; he can
/// only end the stream early. Pure.
/// Threads  one at a time.
namespace runjob {

/// limit of a sealed record without its length (Noise, section 3)
inline constexpr std::size_t kMostRecordBytes = 65'535;

class Sealer {
 public:
  explicit Sealer(const SealKey& key) : key_(key) {}

  /// Appends `plain` as one or more records. An empty text makes one record too.
  void seal(std::string_view plain, std::string& out);

 private:
  SealKey key_;
  std::uint64_t counter_ = 0;
};

class Opener {
 public:
  explicit Opener(const SealKey& key) : key_(key) {}

  /// Appends the contents of all complete records received so far to `out`.
  /// Errors  Error(kAuth) if the other end did not seal a record at this position of this connection; afterwards
  ///         nothing can be opened.
  void feed(std::string_view bytes, std::string& out);

  /// The number of opened records.
  std::uint64_t records() const { return counter_; }

 private:
  void open_all(std::string_view& bytes, std::string& out);

  SealKey key_;
  std::uint64_t counter_ = 0;
  std::string partial_;  // the bytes of an incomplete record
};

}  // namespace runjob
