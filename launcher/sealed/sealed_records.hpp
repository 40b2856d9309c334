#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/sealed/noise_handshake.hpp"

/// A stream of bytes as sealed records: two bytes of length, big-endian, then that many bytes of ChaCha20-Poly1305, with a
/// counter as nonce. So no byte can be read, changed, left out, repeated or moved by who sits between; only the end can come
/// early. Pure. Threads  one at a time.
namespace runjob {

inline constexpr std::size_t kMostRecordBytes = 65'535;  ///< Noise, section 3: of a sealed record without its length

class Sealer {
 public:
  explicit Sealer(const SealKey& key) : key_(key) {}

  /// Appends `plain` as one or more records; an empty one too makes a record.
  void seal(std::string_view plain, std::string& out);

 private:
  SealKey key_;
  std::uint64_t counter_ = 0;
};

class Opener {
 public:
  explicit Opener(const SealKey& key) : key_(key) {}

  /// Appends to `out` what the records among the bytes so far hold. Errors  Error(kAuth) when one was not sealed by the
  /// other side, here and now; nothing can be opened after that.
  void feed(std::string_view bytes, std::string& out);

  /// How many records have been opened.
  std::uint64_t records() const { return counter_; }

 private:
  void open_all(std::string_view& bytes, std::string& out);

  SealKey key_;
  std::uint64_t counter_ = 0;
  std::string partial_;  // of a record that has not come whole
};

}  // namespace runjob
