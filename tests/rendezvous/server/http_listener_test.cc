#include "rendezvous/server/http_listener.hpp"

#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/rendezvous/raw_socket.hpp"
#include "tests/temporary_directory.hpp"

using namespace runjob;
using namespace runjob::rendezvous;

TEST_CASE("a listener takes a free port of a numeric address of either family", "[net]") {
  boost::asio::io_context context;
  const Listener four = listen_on_address(context.get_executor(), "127.0.0.1", 0);
  CHECK(port_of(four) > 0);
  const Listener again = listen_on_address(context.get_executor(), "127.0.0.2", port_of(four));
  CHECK(port_of(again) == port_of(four));
  try {
    const Listener six = listen_on_address(context.get_executor(), "::1", 0);
    CHECK(port_of(six) > 0);
  } catch (const Error& error) {
    WARN("skipped: no IPv6 here: " << error.what());
  }
}

TEST_CASE("an address that cannot be listened on is named with the reason", "[net]") {
  boost::asio::io_context context;
  const auto listen = [&](const std::string& address, int port) {
    listen_on_address(context.get_executor(), address, port);
  };
  CHECK_THROWS_WITH(listen("localhost", 0), "listen on localhost: it is not a numeric address");
  CHECK_THROWS_WITH(listen("192.0.2.1", 0), "listen on 192.0.2.1 port 0: Cannot assign requested address");
  const Listener taken = listen_on_address(context.get_executor(), "127.0.0.1", 0);
  const std::string port = std::to_string(port_of(taken));
  CHECK_THROWS_WITH(listen("127.0.0.1", port_of(taken)),
                    "listen on 127.0.0.1 port " + port + ": Address already in use");
}

TEST_CASE("the other end of a connection is known by its user or its address", "[net]") {
  boost::asio::io_context context;
  const TemporaryDirectory directory;
  Listener local = listen_on_path(context.get_executor(), directory.path() + "/s");
  CHECK(port_of(local) == 0);
  const RawSocket local_peer = RawSocket::connect_to(directory.path() + "/s");
  StreamSocket from_here = local.accept();
  CHECK(is_own_users(from_here.native_handle()));
  CHECK(peer_name(from_here.native_handle()) == "a process of user " + std::to_string(::geteuid()));

  Listener tcp = listen_on_address(context.get_executor(), "127.0.0.1", 0);
  const RawSocket tcp_peer = RawSocket::connect_to(port_of(tcp));
  StreamSocket from_network = tcp.accept();
  CHECK_FALSE(is_own_users(from_network.native_handle()));
  CHECK_THAT(peer_name(from_network.native_handle()), ContainsSubstring("127.0.0.1 port "));
}

TEST_CASE("an accepted socket is not inherited, and notices a host that vanished", "[net]") {
  boost::asio::io_context context;
  Listener listener = listen_on_address(context.get_executor(), "127.0.0.1", 0);
  const RawSocket peer = RawSocket::connect_to(port_of(listener));
  StreamSocket socket = listener.accept();
  prepare_accepted(socket.native_handle());
  CHECK((::fcntl(socket.native_handle(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((::fcntl(listener.native_handle(), F_GETFD) & FD_CLOEXEC) != 0);
  int on = 0;
  socklen_t length = sizeof on;
  REQUIRE(::getsockopt(socket.native_handle(), SOL_SOCKET, SO_KEEPALIVE, &on, &length) == 0);
  CHECK(on == 1);
}
