#include "launcher/network/interface_facts.hpp"

#include <algorithm>
#include <sstream>

#include "tests/catch.hpp"

using namespace runjob;

namespace {

constexpr const char* kHeadings = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n";

std::set<std::string> defaults(const std::string& ipv4, const std::string& ipv6) {
  std::istringstream v4(kHeadings + ipv4), v6(ipv6);
  return default_route_interfaces(v4, v6);
}

std::string ipv6_route(const std::string& destination, const std::string& metric, const std::string& flags,
                       const std::string& interface) {
  const std::string none(32, '0');
  return destination + " " + none + " 00 fd000000000000000000000000000001 " + metric + " 00000001 00000000 " + flags +
         " " + interface + "\n";
}

using Names = std::set<std::string>;

}  // namespace

TEST_CASE("the interface of the default route is found in the kernel's tables", "[unit]") {
  const std::string network = "eth1\t0000010A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
  const std::string first = "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n";
  const std::string second = "wlan0\t00000000\t010300C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n";
  CHECK(defaults("", "").empty());
  CHECK(defaults(network, "").empty());
  CHECK(defaults(second + network + first, "") == Names{"eth0"});
  const std::string all = std::string(32, '0') + " 00", one = "fd000000000000000000000000000000 40";
  CHECK(defaults("", ipv6_route(all, "00000400", "00000003", "eth2") +
                         ipv6_route(one, "00000100", "00000001", "eth3")) == Names{"eth2"});
  CHECK(defaults(first, ipv6_route(all, "00000400", "00000003", "eth2")) == Names{"eth0", "eth2"});
  CHECK(defaults("", ipv6_route(all, "ffffffff", "00200200", "lo")).empty());  // "unreachable", as every host has it
  CHECK(defaults("garbage\n\neth0\n", "garbage\n").empty());
}

TEST_CASE("addresses that will not last are not a host's address", "[unit]") {
  std::istringstream table(
      "fd000000000000000000000000000002 02 40 00 80     eth0\n"
      "20010db8000000000000000000000003 02 40 00 01     eth0\n"  // temporary
      "20010db8000000000000000000000004 02 40 00 a0     eth0\n"  // deprecated
      "20010db8000000000000000000000005 02 40 00 40     eth0\n"  // tentative
      "20010db8000000000000000000000006 02 40 00 c8     eth0\n"  // duplicate
      "00000000000000000000000000000001 01 80 10 80       lo\n"
      "not an address 1 2 3\n");
  CHECK(passing_ipv6_addresses(table) == Names{"2001:db8::3", "2001:db8::4", "2001:db8::5", "2001:db8::6"});
}

TEST_CASE("the addresses that other hosts may reach begin with those of the default route", "[unit]") {
  NetworkInterface loopback{.name = "lo", .loopback = true, .addresses = {{"127.0.0.1", 8}}};
  NetworkInterface cable{.name = "eth0", .addresses = {{"10.0.0.5", 24}, {"fe80::5", 64}, {"fd00::5", 64}}};
  NetworkInterface route{.name = "eth1", .default_route = true, .addresses = {{"192.0.2.5", 24}}};
  NetworkInterface unplugged{.name = "eth2", .carrier = false, .addresses = {{"10.9.0.5", 24}}};
  CHECK(reachable_addresses({{loopback, cable, unplugged, route}}) ==
        std::vector<std::string>{"192.0.2.5", "10.0.0.5", "fd00::5"});
  CHECK(reachable_addresses({{loopback, unplugged}}) == std::vector<std::string>{"127.0.0.1"});
  cable.addresses.assign(40, {"10.0.0.5", 24});
  CHECK(reachable_addresses({{cable}}).size() == 32);
}

TEST_CASE("this host's loopback interface is described", "[net]") {
  const NetworkFacts facts = network_facts();
  const auto loopback = std::find_if(facts.interfaces.begin(), facts.interfaces.end(),
                                     [](const NetworkInterface& each) { return each.loopback; });
  REQUIRE(loopback != facts.interfaces.end());
  CHECK(std::count(loopback->addresses.begin(), loopback->addresses.end(), InterfaceAddress{"127.0.0.1", 8}) == 1);
  CHECK(loopback->carrier);
  CHECK_FALSE(loopback->default_route);
}

TEST_CASE("the addresses of this host are its interfaces' and all of loopback", "[net]") {
  for (const NetworkInterface& interface : network_facts().interfaces) {
    for (const InterfaceAddress& each : interface.addresses) {
      INFO(each.address);
      CHECK(is_own_address(each.address));
    }
  }
  CHECK(is_own_address("127.0.0.1"));
  CHECK(is_own_address("127.0.1.1"));  // Debian's /etc/hosts has it for the host's own name
  CHECK_FALSE(is_own_address("192.0.2.77"));
  CHECK_FALSE(is_own_address("2001:db8::77"));
  CHECK_FALSE(is_own_address("localhost"));
}
