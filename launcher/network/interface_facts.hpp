#pragma once

#include <istream>
#include <set>
#include <string>
#include <vector>

#include "launcher/channel/network_facts.hpp"

namespace runjob {

/// The interfaces of this host that are up and have addresses. Needs no privileges, asks only the kernel and resolves
/// no names.
/// Errors  none: a fact that the kernel does not give is left out.
NetworkFacts network_facts();

/// True for a numeric address of this host: one of its interfaces has it, or it is a loopback address.
bool is_own_address(const std::string& address);

/// The addresses at which other hosts may reach this one, at most 32; those of the default route come first. Loopback
/// alone when there are no others. Pure.
std::vector<std::string> reachable_addresses(const NetworkFacts& facts);

/// The interfaces of the default routes of least metric, out of /proc/net/route and /proc/net/ipv6_route. Pure.
/// Source  Linux, net/ipv4/fib_trie.c and net/ipv6/route.c, the seq_show functions.
std::set<std::string> default_route_interfaces(std::istream& ipv4, std::istream& ipv6);

/// The IPv6 addresses out of /proc/net/if_inet6 that must not or will not long be used: temporary, deprecated,
/// tentative and duplicate ones, spelled as in NetworkFacts. Pure.
/// Source  Linux, net/ipv6/addrconf.c, if6_seq_show; the flags are rtnetlink(7)'s IFA_F_*.
std::set<std::string> passing_ipv6_addresses(std::istream& addresses);

}  // namespace runjob
