#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

/// The two ends of a TCP connection over loopback.
/// Owner  of both sockets.
struct TcpPair {
  TcpPair() {
    const runjob::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener.get(), generic, length) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    REQUIRE(::getsockname(listener.get(), generic, &length) == 0);
    near.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(near.get(), generic, length) == 0);
    far.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  runjob::UniqueFd near, far;
};
