#pragma once

#include <string>
#include <vector>

namespace runjob::runtime {

/// One address of one network interface of this host.
struct InterfaceAddress {
  std::string interface;  ///< "eth0"
  std::string address;    ///< numeric
  bool loopback = false;
  bool ipv6 = false;
};

/// The interfaces that are up, in the kernel's order.
/// Errors  Error(kSystem).
std::vector<InterfaceAddress> list_addresses();

/// The address by which the other ranks reach this one: loopback when all are on this host, else the first of
/// `interface`, or when that is empty the first that is not loopback; IPv4 before IPv6. Pure.
/// Errors  Error(kUsage) when there is none, listing the interfaces.
std::string choose_address(const std::vector<InterfaceAddress>& addresses, bool one_host, const std::string& interface);

}  // namespace runjob::runtime
