#pragma once

#include <cstdint>
#include <memory>
#include <netdb.h>
#include <string>

namespace runjob::runtime {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// A numeric IPv4 or IPv6 address with a port, for bind() and connect(). The list has one entry.
/// Errors  Error(kConnect): the text is no numeric address.
AddressList parse_address(const std::string& address, std::uint16_t port);

/// The numeric address at the other end of a connected socket, or words for an unknown one.
std::string peer_address(int socket);

}  // namespace runjob::runtime
