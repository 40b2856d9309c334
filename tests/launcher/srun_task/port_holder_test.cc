#include "launcher/srun_task/port_holder.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("the user who listens on a port is found, over IPv4 and IPv6", "[net]") {
  const int family = GENERATE(AF_INET, AF_INET6);
  const UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket && family == AF_INET6) {
    WARN("skipped: no IPv6 here");
    return;
  }
  REQUIRE(::listen(socket.get(), 1) == 0);  // on a free port of every address
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const int port = ntohs(family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                           : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
  CHECK(port_holder(port) == ::getuid());
  CHECK_FALSE(port_holder(1));
}
