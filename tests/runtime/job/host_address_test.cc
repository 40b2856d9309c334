#include "runtime/job/host_address.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

const std::vector<InterfaceAddress> kAddresses = {{"lo", "127.0.0.1", true, false},
                                                  {"eth0", "fd00::1", false, true},
                                                  {"eth0", "10.0.0.1", false, false},
                                                  {"eth1", "10.1.0.1", false, false},
                                                  {"wg0", "fd01::1", false, true}};

}  // namespace

TEST_CASE("ranks on one host talk over loopback unless an interface is asked for", "[runtime][unit]") {
  CHECK(choose_address(kAddresses, {true, "", ""}) == "127.0.0.1");
  CHECK(choose_address({}, {true, "", ""}) == "127.0.0.1");
  CHECK(choose_address(kAddresses, {true, "eth1", ""}) == "10.1.0.1");
}

TEST_CASE("hosts reach each other by the first address that is not loopback, IPv4 first", "[runtime][unit]") {
  CHECK(choose_address(kAddresses, {false, "", ""}) == "10.0.0.1");
  CHECK(choose_address(kAddresses, {false, "wg0", ""}) == "fd01::1");
  CHECK(choose_address(kAddresses, {false, "lo", ""}) == "127.0.0.1");
}

TEST_CASE("the address that the launcher has found out counts, unless an interface is asked for", "[runtime][unit]") {
  CHECK(choose_address(kAddresses, {false, "", "10.1.0.1"}) == "10.1.0.1");
  CHECK(choose_address(kAddresses, {true, "", "10.1.0.1"}) == "10.1.0.1");
  CHECK(choose_address(kAddresses, {false, "eth0", "10.1.0.1"}) == "10.0.0.1");
}

TEST_CASE("without such an interface the error lists those that exist", "[runtime][unit]") {
  CHECK_THROWS_WITH(choose_address(kAddresses, {false, "ib0", ""}),
                    "RUNJOB_GLOO_IFACE: 'ib0' is not up or has no address; this host has: eth0, eth1, lo, wg0");
  CHECK_THROWS_WITH(choose_address({kAddresses[0]}, {false, "", ""}), ContainsSubstring("no network interface"));
}

TEST_CASE("this host's loopback interface is found", "[runtime][net]") {
  const auto addresses = list_addresses();
  CHECK(std::any_of(addresses.begin(), addresses.end(),
                    [](const InterfaceAddress& a) { return a.loopback && a.address == "127.0.0.1"; }));
}
