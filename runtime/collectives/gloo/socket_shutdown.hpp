#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/unique_handle.hpp"

/// Gloo has no abort: a blocked collective ends early only when its connections end. It does not give its
/// sockets away either, so they are found among this process's descriptors by the addresses that Gloo told.
namespace runjob::runtime {

/// A TCP address and port in one canonical form, comparable.
using Endpoint = std::string;

/// Of a socket address in memory (at least a sockaddr_in or sockaddr_in6); "" for another family.
Endpoint endpoint_of(std::string_view socket_address);

/// shutdown(2) for each TCP socket of this process whose own end is one of `own` (it listens there or was
/// accepted there) or whose other end is one of `peers`. Closes nothing: descriptors stay their owner's.
/// Threads  any; a descriptor that is closed or reused meanwhile is not confused with another.
/// Errors   none: what cannot be read is left alone.
void shut_down_sockets(const std::vector<Endpoint>& own, const std::vector<Endpoint>& peers);

/// A duplicate of the connected TCP socket of this process whose own end is `own` or whose other end is `peer`; none when
/// there is no such socket.
UniqueFd find_socket(const Endpoint& own, const Endpoint& peer);

}  // namespace runjob::runtime
