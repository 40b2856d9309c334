#pragma once

#include <string>
#include <vector>

namespace runjob {

struct InterfaceAddress {
  std::string address;    ///< numeric, without a scope: "10.0.0.5", "fd00::5"
  int prefix_length = 0;  ///< of its network, in bits

  bool operator==(const InterfaceAddress&) const = default;
};

/// A network interface that is up and has addresses.
struct NetworkInterface {
  std::string name;     ///< as getifaddrs(3) gives it: "eth0", "eth0:1"
  int speed_mbits = 0;  ///< of the link; 0 when unknown, as it is for most virtual ones
  bool loopback = false;
  bool point_to_point = false;  ///< a tunnel
  bool carrier = true;          ///< false for a cable that is not plugged in, a bridge without members
  bool default_route = false;   ///< packets to the rest of the world leave here
  std::vector<InterfaceAddress> addresses;

  bool operator==(const NetworkInterface&) const = default;
};

/// The networks of an agent's host, in the kernel's order.
struct NetworkFacts {
  std::vector<NetworkInterface> interfaces;

  bool operator==(const NetworkFacts&) const = default;
};

}  // namespace runjob
