#pragma once

namespace runjob::rendezvous {

/// Must precede the first use of libsodium: it opens the source of random bytes and chooses the implementations for
/// this processor. Each function that makes a key, a nonce, a digest or a MAC calls it; all calls but the first only
/// read a flag.
/// Threads  any.
/// Errors   Error(kSystem) when the system gives no random bytes: keys could then be guessed.
void prepare_libsodium();

}  // namespace runjob::rendezvous
