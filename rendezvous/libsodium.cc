#include "rendezvous/libsodium.hpp"

#include <sodium/core.h>

#include "base/error.hpp"

namespace runjob::rendezvous {

void prepare_libsodium() {
  static const bool is_ready = ::sodium_init() >= 0;
  if (!is_ready)
    throw Error(
        Errc::kSystem,
        "libsodium could not be initialized, so that no keys can be made; are getrandom() and /dev/urandom there?");
}

}  // namespace runjob::rendezvous
