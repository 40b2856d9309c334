#include "runtime/collectives/gloo/socket_shutdown.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::UniqueFd;

namespace {

/// A TCP connection over loopback, both ends in this process.
struct Connection {
  UniqueFd listener, client, server;
  sockaddr_in address{};

  Connection() {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    listener.reset(::socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(::bind(listener.get(), generic, length) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    REQUIRE(::getsockname(listener.get(), generic, &length) == 0);
    client.reset(::socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(::connect(client.get(), generic, length) == 0);
    server.reset(::accept(listener.get(), nullptr, nullptr));
    listener.reset();
  }

  Endpoint listened() const { return endpoint_of({reinterpret_cast<const char*>(&address), sizeof address}); }

  bool alive() const {
    char byte = 'x';
    return ::send(client.get(), &byte, 1, MSG_NOSIGNAL) == 1 && ::recv(server.get(), &byte, 1, MSG_DONTWAIT) == 1;
  }
};

}  // namespace

TEST_CASE("exactly the named connections are shut down, from either end", "[runtime][net]") {
  const Connection accepted, connected, other;
  REQUIRE(accepted.alive());
  SECTION("the end that listened") {
    shut_down_sockets({accepted.listened()}, {});
  }
  SECTION("the end that connected") {
    shut_down_sockets({}, {accepted.listened()});
  }
  CHECK_FALSE(accepted.alive());
  CHECK(connected.alive());
  CHECK(other.alive());
}

TEST_CASE("nothing is closed: the descriptors stay their owner's", "[runtime][net]") {
  const Connection connection;
  shut_down_sockets({connection.listened()}, {connection.listened()});
  char byte;
  CHECK(::recv(connection.client.get(), &byte, 1, 0) == 0);
  CHECK(::recv(connection.server.get(), &byte, 1, 0) == 0);
}

TEST_CASE("what is no internet address matches nothing", "[runtime][unit]") {
  CHECK(endpoint_of("").empty());
  CHECK(endpoint_of(std::string(200, 'x')).empty());
  const Connection connection;
  shut_down_sockets({"", endpoint_of("")}, {""});
  CHECK(connection.alive());
}
