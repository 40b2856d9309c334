#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Numeric IP addresses as text, and their networks. Pure functions, which look up nothing.
namespace runjob {

/// "10.0.0.5" or "fd00::5", without a port or scope.
bool is_ip_address(const std::string& text);
bool is_ipv6_address(const std::string& text);

/// 127.0.0.0/8 or ::1.
bool is_loopback_address(const std::string& address);

/// 169.254.0.0/16 or fe80::/10: an address that is valid on one interface only, or that a host has chosen by itself
/// because nothing gave it one.
bool is_link_local_address(const std::string& address);

/// The network of `address` in one spelling, so that networks can be compared: "10.0.0.0/24", "fd00::/64".
/// Nothing when `address` is none or has fewer bits than `prefix_length`.
std::optional<std::string> network_of(const std::string& address, int prefix_length);

/// Every address is in its own network of all bits: 32 or 128.
int address_bits(const std::string& address);

}  // namespace runjob
