#include "runtime/links/local_interface.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

using runjob::UniqueFd;
using runjob::runtime::local_interface;

TEST_CASE("a socket's interface is that of its address, and one without an address has none", "[runtime][net]") {
  const UniqueFd bound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      unbound(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(bound.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  CHECK(local_interface(bound.get()) == "lo");
  CHECK(local_interface(unbound.get()).empty());
  CHECK(local_interface(-1).empty());
}
