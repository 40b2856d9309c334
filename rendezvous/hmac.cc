#include "rendezvous/hmac.hpp"

#include <sodium/crypto_generichash.h>
#include <sodium/utils.h>

#include "rendezvous/libsodium.hpp"

namespace runjob::rendezvous {

Hmac::Hmac(const Bytes& key, std::string_view purpose) {
  prepare_libsodium();
  ::crypto_auth_hmacsha256_init(&state_, key.data(), key.size());
  add(purpose);
}

Hmac::~Hmac() {
  ::sodium_memzero(&state_, sizeof state_);
}

Hmac& Hmac::add(std::string_view field) {
  number(field.size());
  ::crypto_auth_hmacsha256_update(&state_, reinterpret_cast<const unsigned char*>(field.data()), field.size());
  return *this;
}

Hmac& Hmac::add(const Bytes& field) {
  return add(std::string_view(reinterpret_cast<const char*>(field.data()), field.size()));
}

Hmac& Hmac::number(std::uint64_t value) {
  Bytes bytes{};
  for (std::size_t i = 0; i < sizeof value; ++i) bytes[i] = static_cast<unsigned char>(value >> (8 * i));
  ::crypto_auth_hmacsha256_update(&state_, bytes.data(), sizeof value);
  return *this;
}

Hmac& Hmac::add_digest(std::string_view field) {
  Bytes digest;
  ::crypto_generichash(digest.data(), digest.size(), reinterpret_cast<const unsigned char*>(field.data()), field.size(),
                       nullptr, 0);
  return add(digest);
}

Hmac::Bytes Hmac::result() {
  Bytes mac;
  ::crypto_auth_hmacsha256_final(&state_, mac.data());
  return mac;
}

Secret Hmac::secret() {
  Secret key;
  ::crypto_auth_hmacsha256_final(&state_, key.bytes().data());
  return key;
}

}  // namespace runjob::rendezvous
