#include "runtime/collectives/shm/memory/sharing.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

std::string offer(const SharingPlace& place) {
  return encode(SharingOffer{"", place, "\3", "/tmp/x", "@x", "token"});
}
std::string offer(const std::string& kernel) {
  return offer(SharingPlace{kernel, "files", "network", "1000"});
}

}  // namespace

TEST_CASE("an offer survives its way as an address, whatever bytes are in it", "[runtime][unit]") {
  const SharingOffer offer{"", {"k", "f", "n", "u"}, "\3", "/tmp/\xff", "@\xfe", std::string("\0\x80 token", 8)};
  CHECK(is_sharing_offer(encode(offer)));
  CHECK(decode_sharing_offer(encode(offer), 3) == offer);
  CHECK_FALSE(is_sharing_offer(""));
  CHECK_THROWS_WITH(decode_sharing_offer("other", 3), "the address of rank 3 is not one of shared memory");
  CHECK_THROWS_WITH(decode_sharing_offer(encode(offer).substr(0, 40), 3),
                    ContainsSubstring("the shared memory address of rank 3 is malformed: "));
}

TEST_CASE("ranks share memory when all offer it on the same host", "[runtime][unit]") {
  CHECK_FALSE(objection_to_sharing({offer("a"), offer("a"), offer("a")}));
  CHECK(objection_to_sharing({offer("a"), offer("a"), offer("b")}) == "rank 2 is on another kernel than rank 0");
  CHECK(objection_to_sharing({offer("a"), "gloo's address"}) == "rank 1 has it switched off");
  CHECK(objection_to_sharing(
            {offer("a"), encode(SharingOffer{"memfd_create: Operation not permitted", {}, "", "", "", ""})}) ==
        "rank 1: memfd_create: Operation not permitted");
}

TEST_CASE("containers of one network and user share memory, others do not", "[runtime][unit]") {
  const std::string first = offer(SharingPlace{"k", "files", "network", "1000"});
  const auto objection = [&](const SharingPlace& place) { return objection_to_sharing({first, offer(place)}); };
  CHECK_FALSE(objection({"k", "others", "network", "1000"}));
  CHECK_FALSE(objection({"k", "files", "other", "1000"}));
  CHECK_FALSE(objection({"k", "others", "network", ""}));
  CHECK(objection({"k", "others", "other", "1000"}) == "rank 1 is in another container and network than rank 0");
  CHECK(objection({"k", "files", "network", "1001"}) == "rank 1 is of another user than rank 0");
}

TEST_CASE("a rank with other files uses the socket without one", "[runtime][unit]") {
  const SharingPlace here{"k", "files", "network", "1000"}, other{"k", "others", "network", "1000"};
  const SharingOffer of_owner{"", here, "", "/tmp/x", "@x", ""};
  CHECK(socket_for(here, of_owner) == "/tmp/x");
  CHECK(socket_for(other, of_owner) == "@x");
}

TEST_CASE("a user is known by its number outside of a user namespace", "[runtime][unit]") {
  CHECK(user_outside(1000, "         0          0 4294967295\n") == "1000");
  CHECK(user_outside(0, "0 1000 1\n") == "1000");
  CHECK(user_outside(5, "0 1000 1\n1 100000 65536\n") == "100004");
  CHECK(user_outside(65534, "0 1000 1\n").empty());
  CHECK(user_outside(65534, "").empty());
}

TEST_CASE("a place is the same for a child and another one for another user", "[runtime][unit]") {
  const SharingPlace here = this_place();
  CHECK(this_place() == here);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (this_place() != here) ::_exit(1);
    if (::geteuid() == 0) {
      if (::setresuid(65534, 65534, 65534) != 0 || this_place() == here) ::_exit(2);
    }
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  CHECK(status == 0);
}
