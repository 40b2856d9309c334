#pragma once

#include <array>
#include <cstdint>
#include <sodium/crypto_auth_hmacsha256.h>
#include <string_view>

#include "base/secrets/secret.hpp"

namespace runjob::rendezvous {

/// HMAC-SHA256 (RFC 2104) over a list of fields, which wipes what it keeps of the key. The length of each field comes
/// before it, so that no two lists give the same text.
/// Threads  one at a time.
class Hmac {
 public:
  using Bytes = std::array<unsigned char, 32>;

  /// `purpose`: the first field. A MAC for one purpose is worth nothing for another one.
  Hmac(const Bytes& key, std::string_view purpose);
  ~Hmac();
  Hmac(const Hmac&) = delete;
  Hmac& operator=(const Hmac&) = delete;

  Hmac& add(std::string_view field);
  Hmac& add(const Bytes& field);
  Hmac& number(std::uint64_t value);
  /// Adds the BLAKE2b digest (RFC 7693, 32 bytes) of a field that may be long: it takes a third of add()'s time.
  Hmac& add_digest(std::string_view field);

  /// The MAC. The object must not be used afterwards.
  Bytes result();
  /// The same as a key.
  Secret secret();

 private:
  crypto_auth_hmacsha256_state state_;
};

}  // namespace runjob::rendezvous
