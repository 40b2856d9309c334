#pragma once

#include <string>
#include <vector>

namespace runjob {

/// The address and the interface by which the other hosts of a job reach this one.
struct HostAddress {
  std::string address;  ///< numeric
  bool ipv6 = false;
  std::string interface;  ///< "" when nothing depends on it: a single host's loopback
  /// `interface`, and the others that --network-interface names and that work too.
  std::vector<std::string> interfaces;

  bool operator==(const HostAddress&) const = default;
};

/// The address for a job on one host.
inline HostAddress loopback_address() {
  return {"127.0.0.1", false, "", {}};
}

}  // namespace runjob
