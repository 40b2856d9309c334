#include "runtime/links/congestion_control.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::UniqueFd;

namespace {

UniqueFd tcp_socket() {
  return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

bool set(int socket, const char* name) {
  return ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, static_cast<socklen_t>(std::string(name).size())) == 0;
}

void warn_without_bbr() {
  WARN("not tested: this kernel has no BBR, or does not permit it");
}

/// Two ends of a connection through the loopback interface. The listener's socket has begin_without_bbr().
struct Connection {
  Connection() {
    const UniqueFd listener = tcp_socket();
    if (has_bbr) set(listener.get(), "bbr");
    begin_without_bbr(listener.get());
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t length = sizeof address;
    auto* const to = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener.get(), to, length) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    REQUIRE(::getsockname(listener.get(), to, &length) == 0);
    REQUIRE(::connect(connected.get(), to, length) == 0);
    accepted.reset(::accept(listener.get(), nullptr, nullptr));
  }
  const bool has_bbr = set(tcp_socket().get(), "bbr");
  UniqueFd connected = tcp_socket(), accepted;
};

}  // namespace

TEST_CASE("a socket that would use BBR begins with another congestion control", "[runtime][net]") {
  const UniqueFd socket = tcp_socket();
  if (!set(socket.get(), "bbr")) return warn_without_bbr();
  begin_without_bbr(socket.get());
  const std::string chosen = congestion_control(socket.get());
  CHECK((chosen == "cubic" || chosen == "reno"));
}

TEST_CASE("a socket with another congestion control keeps it", "[runtime][net]") {
  const UniqueFd socket = tcp_socket();
  REQUIRE(set(socket.get(), "reno"));
  begin_without_bbr(socket.get());
  CHECK(congestion_control(socket.get()) == "reno");
}

TEST_CASE("a connection inherits the choice of its listener", "[runtime][net]") {
  const Connection connection;
  if (!connection.has_bbr) return warn_without_bbr();
  CHECK(congestion_control(connection.accepted.get()) != "bbr");
}

TEST_CASE("a connection with a short round trip does not go back to BBR", "[runtime][net]") {
  const Connection connection;
  const int socket = connection.accepted.get();
  const std::string before = congestion_control(socket);
  REQUIRE(has_short_round_trip(socket));
  settle_congestion_control(socket, "bbr");
  CHECK(congestion_control(socket) == before);
}

TEST_CASE("a round trip that is not known is not short, and the host's default returns", "[runtime][net]") {
  const UniqueFd socket = tcp_socket();
  if (!set(socket.get(), "bbr")) return warn_without_bbr();
  begin_without_bbr(socket.get());
  settle_congestion_control(socket.get(), "reno");  // only BBR was switched off
  CHECK(congestion_control(socket.get()) != "bbr");
  REQUIRE_FALSE(has_short_round_trip(socket.get()));
  settle_congestion_control(socket.get(), "bbr");
  CHECK(congestion_control(socket.get()) == "bbr");
}

TEST_CASE("the default of the host is that of a new socket", "[runtime][net]") {
  CHECK(congestion_control_of_host() == congestion_control(tcp_socket().get()));
  CHECK(congestion_control(-1).empty());
}
