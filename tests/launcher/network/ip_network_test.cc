#include "launcher/network/ip_network.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("numeric addresses are told from names and from each other", "[unit]") {
  for (const char* address : {"10.0.0.5", "0.0.0.0", "fd00::5", "::1", "::ffff:10.0.0.1"})
    CHECK(is_ip_address(address));
  for (const char* other : {"", "10.0.0", "10.0.0.256", "10.0.0.5 ", "eth0", "fe80::1%eth0", "10.0.0.0/8", "[::1]"}) {
    INFO(other);
    CHECK_FALSE(is_ip_address(other));
    CHECK_FALSE(network_of(other, 8));
  }
  CHECK(is_ipv6_address("fd00::5"));
  CHECK_FALSE(is_ipv6_address("10.0.0.5"));
  CHECK(is_loopback_address("127.0.1.1"));
  CHECK(is_loopback_address("::1"));
  CHECK_FALSE(is_loopback_address("128.0.0.1"));
  CHECK(is_link_local_address("169.254.3.4"));
  CHECK(is_link_local_address("fe80::5"));
  CHECK_FALSE(is_link_local_address("169.255.0.1"));
  CHECK_FALSE(is_link_local_address("fd00::1"));
  CHECK_FALSE(is_link_local_address("name"));
}

TEST_CASE("a network has one spelling", "[unit]") {
  CHECK(network_of("10.1.2.3", 24) == "10.1.2.0/24");
  CHECK(network_of("10.1.2.200", 25) == "10.1.2.128/25");
  CHECK(network_of("10.1.2.3", 0) == "0.0.0.0/0");
  CHECK(network_of("10.1.2.3", 32) == "10.1.2.3/32");
  CHECK(network_of("fd00::ff:1", 64) == "fd00::/64");
  CHECK(network_of("FD00:0::1", 128) == "fd00::1/128");
  CHECK_FALSE(network_of("10.1.2.3", 33));
  CHECK_FALSE(network_of("fd00::1", 129));
  CHECK_FALSE(network_of("fd00::1", -1));
  CHECK(address_bits("10.0.0.1") == 32);
  CHECK(address_bits("::1") == 128);
}
