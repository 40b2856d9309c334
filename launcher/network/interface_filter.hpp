#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/channel/network_facts.hpp"

namespace runjob {

/// One word of --network-interface.
struct InterfacePattern {
  enum class Kind {
    kName,          ///< the interface that is called so
    kNameOrPrefix,  ///< the one that is called so; where there is none, all whose names begin so
    kNetwork,       ///< the addresses in a network
  };
  Kind kind = Kind::kNameOrPrefix;
  std::string text;       ///< the name, or the network in its one spelling: "10.0.0.0/8"
  int prefix_length = 0;  ///< of a network

  bool operator==(const InterfacePattern&) const = default;
};

/// Which of a host's addresses may be used: any of the included patterns' (all when there are none) and none of the excluded
/// ones'. The same words mean the same on every host, whatever its interfaces are called.
struct InterfaceFilter {
  std::vector<InterfacePattern> included;
  std::vector<InterfacePattern> excluded;
  std::string text;  ///< as the user wrote it, for messages
};

/// Reads lists as NCCL_SOCKET_IFNAME and mpirun's btl_tcp_if_include spell them: words between commas; '^' in front of a list
/// excludes what it names, '=' (behind '^') means exactly these names. A word is a name or its beginning, an address, or a
/// network "10.0.0.0/8". Several lists add up.
/// Errors  Error(kUsage) naming `place`, the word and what was expected.
InterfaceFilter parse_interface_filter(const std::vector<std::string>& lists, std::string_view place);

/// Whether `address` of `interface`, one of `host`'s, may be used. Pure.
bool allows(const InterfaceFilter& filter, const NetworkFacts& host, const NetworkInterface& interface,
            const InterfaceAddress& address);

/// Whether it is named, not only left over by an exclusion.
bool names(const InterfaceFilter& filter, const NetworkFacts& host, const NetworkInterface& interface,
           const InterfaceAddress& address);

}  // namespace runjob
