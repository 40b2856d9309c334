#include "launcher/network/candidates.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

NetworkInterface interface(const std::string& name, std::vector<InterfaceAddress> addresses, int speed_mbits = 0) {
  NetworkInterface result;
  result.name = name;
  result.speed_mbits = speed_mbits;
  result.addresses = std::move(addresses);
  return result;
}

std::vector<std::string> addresses(const NetworkFacts& facts, const std::vector<std::string>& lists = {}) {
  std::vector<std::string> result;
  for (const Candidate& each : candidates(facts, parse_interface_filter(lists, "-x"))) result.push_back(each.address);
  return result;
}

using Addresses = std::vector<std::string>;

}  // namespace

TEST_CASE("the best candidates come first: loopback for one machine, networks by speed, IPv4, the default route",
          "[unit]") {
  NetworkFacts facts = {{interface("lo", {{"127.0.0.1", 8}, {"::1", 128}}), interface("eth0", {{"10.0.0.5", 24}}, 1000),
                         interface("ib0", {{"fd01::5", 64}, {"10.1.0.5", 24}}, 100000),
                         interface("eth1", {{"10.2.0.5", 24}}, 1000), interface("eth2", {{"10.3.0.5", 24}})}};
  facts.interfaces[3].default_route = true;
  CHECK(addresses(facts) == Addresses{"127.0.0.1", "::1", "10.1.0.5", "fd01::5", "10.2.0.5", "10.0.0.5", "10.3.0.5"});
}

TEST_CASE("interfaces of containers, virtual machines and tunnels come last, unless they are named", "[unit]") {
  NetworkFacts facts = {{interface("docker0", {{"172.17.0.1", 16}}, 10000),
                         interface("br-0a1b2c", {{"172.18.0.1", 16}}), interface("virbr0", {{"192.168.122.1", 24}}),
                         interface("veth12ab", {{"10.9.0.1", 24}}), interface("gre7", {{"10.8.0.1", 24}}),
                         interface("br0", {{"10.0.0.5", 24}}, 1000)}};
  facts.interfaces[4].point_to_point = true;
  for (const Candidate& each : candidates(facts, {})) {
    INFO(each.interface);
    CHECK((each.kind == Candidate::Kind::kNetwork) == (each.interface == "br0"));
  }
  CHECK(addresses(facts).front() == "10.0.0.5");
  const auto named = candidates(facts, parse_interface_filter({"docker0"}, "-x"));
  REQUIRE(named.size() == 1);
  CHECK(named.front().kind == Candidate::Kind::kNetwork);
  CHECK(named.front().named);
}

TEST_CASE("what can be nobody's way to us is left out", "[unit]") {
  NetworkFacts facts = {{interface("lo", {{"127.0.0.1", 8}, {"127.0.1.1", 8}}),
                         interface("eth0", {{"fe80::5", 64}, {"169.254.7.7", 16}, {"10.0.0.5", 24}}),
                         interface("eth1", {{"10.1.0.5", 24}})}};
  facts.interfaces[2].carrier = false;
  CHECK(addresses(facts) == Addresses{"127.0.0.1", "10.0.0.5"});
  SECTION("unless it is named") {
    CHECK(addresses(facts, {"169.254.0.0/16"}) == Addresses{"169.254.7.7"});
    CHECK(addresses(facts, {"127.0.1.1"}) == Addresses{"127.0.1.1"});
    CHECK(addresses(facts, {"eth1"}) == Addresses{"10.1.0.5"});
  }
  SECTION("IPv6 link-local addresses mean nothing to another host") {
    CHECK(addresses(facts, {"fe80::/10"}).empty());
  }
}

TEST_CASE("a host with hundreds of addresses offers the best of them", "[unit]") {
  NetworkFacts facts;
  for (int i = 0; i < 300; ++i) {
    facts.interfaces.push_back(interface("eth" + std::to_string(i), {{"10.0.0." + std::to_string(i % 250), 24}}, i));
  }
  const auto found = candidates(facts, {});
  CHECK(found.size() == 16);
  CHECK(found.front().interface == "eth299");
}

TEST_CASE("a host without candidates is an error that says what it has", "[unit]") {
  const NetworkFacts facts = {{interface("lo", {{"127.0.0.1", 8}}), interface("eth0", {{"10.0.0.5", 24}})}};
  NetworkFacts unplugged = facts;
  unplugged.interfaces[1].carrier = false;
  const InterfaceFilter filter = parse_interface_filter({"ib0,ib1"}, "-x");
  const auto check = [](const NetworkFacts& second, const InterfaceFilter& with) {
    const NetworkFacts good = {{interface("ib0", {{"10.5.0.1", 24}})}};
    check_candidates({{"s1", good, candidates(good, with)}, {"s2", second, candidates(second, with)}}, with);
  };
  CHECK_NOTHROW(check(facts, {}));
  CHECK_THROWS_WITH(
      check(facts, filter),
      "s2 has no address that --network-interface ib0,ib1 allows; its addresses: lo 127.0.0.1, eth0 10.0.0.5");
  CHECK_THROWS_WITH(check(unplugged, filter), ContainsSubstring("eth0 10.0.0.5 (no carrier)"));
  CHECK_THROWS_WITH(check({}, {}), "s2 has no address that other hosts could reach; its addresses: none");
}
