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

/// The user's and the launcher's settings for the address by which the other ranks reach this one.
struct AddressSettings {
  bool one_host = false;  ///< all ranks are on this host
  std::string interface;  ///< RUNJOB_GLOO_IFACE; "" when not given
  std::string address;    ///< RUNJOB_ADDRESS; "" when not given, as for a job that runjob did not start
};

/// The first address of the named interface; else the given address; else loopback when all ranks are on this host;
/// else the first address that is not loopback. IPv4 is preferred to IPv6. Pure.
/// Errors  Error(kUsage) when there is none, listing the interfaces.
std::string choose_address(const std::vector<InterfaceAddress>& addresses, const AddressSettings& settings);

}  // namespace runjob::runtime
