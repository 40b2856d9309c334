#include "rendezvous/libsodium.hpp"

#include <functional>
#include <sodium/core.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "rendezvous/auth.hpp"
#include "rendezvous/hmac.hpp"
#include "tests/catch.hpp"

using namespace runjob::rendezvous;

TEST_CASE("libsodium is ready after whatever makes a key, a nonce, a digest or a MAC first", "[unit]") {
  constexpr int kWasReady = 1;
  const std::function<void()> first_uses[] = {[] { prepare_libsodium(); },
                                              [] { static_cast<void>(JobKey::random()); },
                                              [] { static_cast<void>(JobKey::from_hex(std::string(64, 'a'))); },
                                              [] { static_cast<void>(random_nonce()); },
                                              [] { static_cast<void>(sha256("a")); },
                                              [] { static_cast<void>(Hmac({}, "test").result()); }};
  for (const auto& use : first_uses) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      use();
      ::_exit(::sodium_init() == kWasReady ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
}
