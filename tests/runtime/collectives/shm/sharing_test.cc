#include "runtime/collectives/shm/sharing.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

std::string offer(const std::string& host) {
  return encode(SharingOffer{"", host, "\3", "/tmp/x", "token"});
}

}  // namespace

TEST_CASE("an offer survives its way as an address, whatever bytes are in it", "[runtime][unit]") {
  const SharingOffer offer{"", "host", "\3", "/tmp/\xff", std::string("\0\x80 token", 8)};
  CHECK(is_sharing_offer(encode(offer)));
  CHECK(decode_sharing_offer(encode(offer)) == offer);
  CHECK_FALSE(is_sharing_offer(""));
  CHECK_THROWS_AS(decode_sharing_offer("other"), runjob::Error);
  CHECK_THROWS_AS(decode_sharing_offer(encode(offer).substr(0, 40)), runjob::Error);
}

TEST_CASE("ranks share memory when all offer it on the same host", "[runtime][unit]") {
  CHECK_FALSE(objection_to_sharing({offer("a"), offer("a"), offer("a")}));
  CHECK(objection_to_sharing({offer("a"), offer("a"), offer("b")}) ==
        "rank 2 is in another container or of another user than rank 0");
  CHECK(objection_to_sharing({offer("a"), "gloo's address"}) == "rank 1 has it switched off");
  CHECK(objection_to_sharing(
            {offer("a"), encode(SharingOffer{"memfd_create: Operation not permitted", "", "", "", ""})}) ==
        "rank 1: memfd_create: Operation not permitted");
}

TEST_CASE("a host is the same for a child and another one for another root or user", "[runtime][unit]") {
  const std::string here = this_host();
  CHECK(this_host() == here);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (this_host() != here) ::_exit(1);
    if (::geteuid() == 0) {
      if (::setresuid(65534, 65534, 65534) != 0 || this_host() == here) ::_exit(2);
    }
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  CHECK(status == 0);
}
