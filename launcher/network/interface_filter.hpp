#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/channel/network_facts.hpp"

namespace runjob {

/// One word of --network-interface.
struct InterfacePattern {
  enum class Kind {
    kName,          ///< the interface with this name
    kNameOrPrefix,  ///< the interface with this name; if there is none, all whose names begin with it
    kNetwork,       ///< the addresses in a network
  };
  Kind kind = Kind::kNameOrPrefix;
  std::string text;       ///< the name, or the network in its one spelling: "10.0.0.0/8"
  int prefix_length = 0;  ///< of a network

  bool operator==(const InterfacePattern&) const = default;
};

/// Selects addresses of a host: those that match an included pattern (all addresses when there is none) and no excluded
/// pattern. A filter is the same for all hosts, although their interfaces may have different names.
struct InterfaceFilter {
  std::vector<InterfacePattern> included;
  std::vector<InterfacePattern> excluded;
  std::string text;  ///< as the user wrote it, for messages
};

/// Reads lists as NCCL_SOCKET_IFNAME and mpirun's btl_tcp_if_include spell them: words between commas; '^' in front of
/// a list excludes what it names, '=' (behind '^') means exactly these names. A word is a name or its beginning, an
/// address, or a network "10.0.0.0/8". Several lists add up.
/// Errors  Error(kUsage) naming `place`, the word and what was expected.
InterfaceFilter parse_interface_filter(const std::vector<std::string>& lists, std::string_view place);

/// True if the job may use `address` of `interface`, an interface of `host`. Pure.
bool allows(const InterfaceFilter& filter, const NetworkFacts& host, const NetworkInterface& interface,
            const InterfaceAddress& address);

/// True if the job may use `address` and an included pattern matches it.
bool names(const InterfaceFilter& filter, const NetworkFacts& host, const NetworkInterface& interface,
           const InterfaceAddress& address);

}  // namespace runjob
