#include "launcher/network/choose_addresses.hpp"

#include <cerrno>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/network/networks.hpp"

using namespace runjob;

namespace {

using Addresses = std::vector<std::string>;

Addresses chosen(const std::vector<TestHost>& hosts, const InterfaceFilter& filter = {}, const Routes& routes = {}) {
  const std::vector<HostNetwork> networks = networks_of(hosts, filter);
  Addresses result;
  for (const HostAddress& each : choose_addresses(networks, probe(hosts, networks, routes)))
    result.push_back(each.address);
  return result;
}

const TestInterface kDocker{"docker0", "172.17.0.1", 16, 10000, "", false};
const TestInterface kLibvirt{"virbr0", "192.168.122.1", 24, 0, "", false};

}  // namespace

TEST_CASE("each host tries the next one and the first, and no other", "[unit]") {
  CHECK(probe_targets(0, 1).empty());
  CHECK(probe_targets(0, 2) == std::vector<int>{1});
  CHECK(probe_targets(1, 2) == std::vector<int>{0});
  CHECK(probe_targets(0, 4) == std::vector<int>{1});
  CHECK(probe_targets(1, 4) == std::vector<int>{2, 0});
  CHECK(probe_targets(2, 4) == std::vector<int>{3, 0});
  CHECK(probe_targets(3, 4) == std::vector<int>{0});
}

TEST_CASE("one network is found among every host's docker0 and virbr0", "[unit]") {
  CHECK(chosen({{"s1", {kDocker, kLibvirt, {"eth0", "10.0.0.1", 24, 1000, "lan", true}}},
                {"s2", {kDocker, kLibvirt, {"enp1s0", "10.0.0.2", 24, 1000, "lan", true}}},
                {"s3", {{"ens5", "10.0.0.3", 24, 1000, "lan", true}, kDocker}}}) ==
        Addresses{"10.0.0.1", "10.0.0.2", "10.0.0.3"});
}

TEST_CASE("a private network of the same numbers on every host is not a common one", "[unit]") {
  // Named like any other, faster than the real one, and with different addresses on the hosts.
  CHECK(
      chosen({{"s1", {{"lan1", "192.168.9.1", 24, 40000, "", false}, {"eth0", "10.0.0.1", 24, 1000, "lan", false}}},
              {"s2", {{"lan1", "192.168.9.2", 24, 40000, "", false}, {"eth0", "10.0.0.2", 24, 1000, "lan", false}}}}) ==
      Addresses{"10.0.0.1", "10.0.0.2"});
}

TEST_CASE("the fastest network that all hosts share wins", "[unit]") {
  const auto host = [](int number, bool has_fast) {
    const std::string last = std::to_string(number);
    TestHost result{"s" + last, {{"eth0", "10.0.0." + last, 24, 1000, "slow", true}}};
    if (has_fast) result.interfaces.push_back({"ib0", "10.1.0." + last, 24, 100000, "fast", false});
    return result;
  };
  CHECK(chosen({host(1, true), host(2, true), host(3, true)}) == Addresses{"10.1.0.1", "10.1.0.2", "10.1.0.3"});
  for (int without = 0; without < 3; ++without) {
    INFO(without);
    CHECK(chosen({host(1, without != 0), host(2, without != 1), host(3, without != 2)}) ==
          Addresses{"10.0.0.1", "10.0.0.2", "10.0.0.3"});
  }
  SECTION("an unknown speed on one host is that of the others") {
    std::vector<TestHost> hosts = {host(1, true), host(2, true)};
    hosts[1].interfaces[1].speed_mbits = 0;
    CHECK(chosen(hosts) == Addresses{"10.1.0.1", "10.1.0.2"});
  }
  SECTION("the slowest host counts") {
    std::vector<TestHost> hosts = {host(1, true), host(2, true), host(3, true)};
    hosts[2].interfaces[1].speed_mbits = 100;
    CHECK(chosen(hosts) == Addresses{"10.0.0.1", "10.0.0.2", "10.0.0.3"});
  }
  SECTION("a cable that is plugged into another switch") {
    std::vector<TestHost> hosts = {host(1, true), host(2, true), host(3, true)};
    hosts[2].interfaces[1].cable = "elsewhere";
    CHECK(chosen(hosts) == Addresses{"10.0.0.1", "10.0.0.2", "10.0.0.3"});
  }
  SECTION("without speeds the default route decides") {
    std::vector<TestHost> hosts = {host(1, true), host(2, true)};
    for (TestHost& each : hosts) {
      for (TestInterface& interface : each.interfaces) interface.speed_mbits = 0;
    }
    CHECK(chosen(hosts) == Addresses{"10.0.0.1", "10.0.0.2"});
  }
}

TEST_CASE("IPv6 serves where IPv4 does not, and one family serves all", "[unit]") {
  const auto host = [](int number, bool ipv4) {
    const std::string last = std::to_string(number);
    TestHost result{"s" + last, {{"eth0", "fd00::" + last, 64, 1000, "lan", true}}};
    if (ipv4) result.interfaces.push_back({"eth0", "10.0.0." + last, 24, 1000, "lan", true});
    return result;
  };
  CHECK(chosen({host(1, false), host(2, false)}) == Addresses{"fd00::1", "fd00::2"});
  CHECK(chosen({host(1, true), host(2, true)}) == Addresses{"10.0.0.1", "10.0.0.2"});
  CHECK(chosen({host(1, true), host(2, false), host(3, true)}) == Addresses{"fd00::1", "fd00::2", "fd00::3"});
}

TEST_CASE("networks that are joined by routes serve where none is common", "[unit]") {
  const std::vector<TestHost> racks = {{"s1", {{"eth0", "10.1.0.1", 24, 0, "rack1", true}}},
                                       {"s2", {{"eth0", "10.1.0.2", 24, 0, "rack1", true}}},
                                       {"s3", {{"eth0", "10.2.0.3", 24, 0, "rack2", true}}}};
  CHECK(chosen(racks, {}, {{"rack1", "rack2"}, {"rack2", "rack1"}}) == Addresses{"10.1.0.1", "10.1.0.2", "10.2.0.3"});
  SECTION("every host with an address of its own, as clouds give them") {
    const std::vector<TestHost> cloud = {{"s1", {{"eth0", "10.128.0.1", 32, 0, "cloud", true}, kDocker}},
                                         {"s2", {{"eth0", "10.128.0.2", 32, 0, "cloud", true}, kDocker}}};
    CHECK(chosen(cloud) == Addresses{"10.128.0.1", "10.128.0.2"});
  }
  SECTION("a host keeps to the first one's network rather than to a faster one that ends at its neighbours") {
    const std::vector<TestHost> hosts = {
        {"s1", {{"eth0", "10.0.0.1", 24, 1000, "lan", true}, {"ib0", "10.9.0.1", 24, 100000, "ib", false}}},
        {"s2", {{"eth0", "10.0.0.2", 24, 1000, "lan", true}, {"ib0", "10.9.0.2", 24, 100000, "ib", false}}},
        {"s3", {{"eth0", "10.5.0.3", 24, 1000, "far", true}}}};
    CHECK(chosen(hosts, {}, {{"lan", "far"}, {"far", "lan"}}) == Addresses{"10.0.0.1", "10.0.0.2", "10.5.0.3"});
  }
  SECTION("a routed fabric is faster than a common network") {
    const std::vector<TestHost> hosts = {
        {"s1", {{"eth0", "10.0.0.1", 24, 1000, "lan", true}, {"roce0", "10.9.1.1", 24, 100000, "rail1", false}}},
        {"s2", {{"eth0", "10.0.0.2", 24, 1000, "lan", true}, {"roce0", "10.9.2.2", 24, 100000, "rail2", false}}}};
    CHECK(chosen(hosts, {}, {{"rail1", "rail2"}, {"rail2", "rail1"}}) == Addresses{"10.9.1.1", "10.9.2.2"});
  }
}

TEST_CASE("a tunnel or a container network serves when nothing else does", "[unit]") {
  const auto host = [](int number) {
    const std::string last = std::to_string(number);
    return TestHost{
        "s" + last,
        {kDocker, {"wg0", "10.7.0." + last, 24, 0, "vpn", false}, {"eth0", "192.168.1." + last, 24, 1000, "", true}}};
  };
  CHECK(chosen({host(1), host(2)}) == Addresses{"10.7.0.1", "10.7.0.2"});
}

TEST_CASE("hosts that turn out to be one machine talk over loopback", "[unit]") {
  const std::vector<TestHost> hosts = {{"localhost", {{"eth0", "10.0.0.1", 24, 1000, "lan", true}}},
                                       {"127.0.0.2", {{"eth0", "10.0.0.1", 24, 1000, "lan", true}}}};
  const std::vector<HostNetwork> networks = networks_of(hosts);
  ProbeOutcomes outcomes = probe(hosts, networks);
  for (auto& [id, outcome] : outcomes) outcome = {ProbeOutcome::Kind::kReached, 0};
  const auto result = choose_addresses(networks, outcomes);
  CHECK(result[0].address == "127.0.0.1");
  CHECK(result[1].interface == "lo");
  SECTION("a single host needs no test") {
    CHECK(choose_addresses({networks[0]}, {}).front().address == "127.0.0.1");
  }
  SECTION("unless the filter wants it otherwise") {
    const std::vector<HostNetwork> filtered = networks_of({hosts[0]}, parse_interface_filter({"eth0"}, "-x"));
    CHECK(choose_addresses(filtered, {}).front().address == "10.0.0.1");
  }
}

TEST_CASE("the filter decides between networks that work", "[unit]") {
  const auto host = [](int number) {
    const std::string last = std::to_string(number);
    return TestHost{"s" + last,
                    {{"eth0", "10.0.0." + last, 24, 1000, "a", true},
                     {"eth1", "10.1.0." + last, 24, 10000, "b", false},
                     {"eth2", "10.2.0." + last, 24, 25000, "", false}}};
  };
  const std::vector<TestHost> hosts = {host(1), host(2)};
  CHECK(chosen(hosts) == Addresses{"10.1.0.1", "10.1.0.2"});
  CHECK(chosen(hosts, parse_interface_filter({"eth0"}, "-x")) == Addresses{"10.0.0.1", "10.0.0.2"});
  CHECK(chosen(hosts, parse_interface_filter({"^10.1.0.0/16"}, "-x")) == Addresses{"10.0.0.1", "10.0.0.2"});
  const auto interfaces = [&](const std::vector<std::string>& lists) {
    const auto networks = networks_of(hosts, parse_interface_filter(lists, "-x"));
    return choose_addresses(networks, probe(hosts, networks)).front().interfaces;
  };
  // NCCL may use several, Gloo one: those that are named and work.
  CHECK(interfaces({"eth0,eth1,eth2"}) == std::vector<std::string>{"eth1", "eth0"});
  CHECK(interfaces({"^eth2"}) == std::vector<std::string>{"eth1"});
  CHECK(interfaces({}) == std::vector<std::string>{"eth1"});
}

TEST_CASE("without a common network the error names hosts, addresses and what happened", "[unit]") {
  const std::vector<TestHost> apart = {{"s1", {{"eth0", "10.0.0.1", 24, 0, "a", true}, kDocker}},
                                       {"s2", {{"eth0", "10.0.0.2", 24, 0, "a", true}, kDocker}},
                                       {"s3", {{"eth0", "10.3.0.3", 24, 0, "b", true}, kDocker}}};
  CHECK_THROWS_WITH(
      chosen(apart),
      "s3 cannot reach s1: tried 10.0.0.1 (Connection timed out), 172.17.0.1 (Connection refused), and one more "
      "such pair; open the network between them or choose another with --network-interface");
  CHECK_THROWS_WITH(
      chosen({apart[0], {"s2", {}}}),
      "s2 cannot reach s1: tried 10.0.0.1 (Connection timed out), 172.17.0.1 (Connection timed out), and one "
      "more such pair; open the network between them or choose another with --network-interface");
  CHECK_THROWS_WITH(chosen({{"s1", {}}, {"s2", {}}}),
                    ContainsSubstring("s2 cannot reach s1: s1 has no address besides loopback"));
  try {
    chosen(apart);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kConnect);
  }
}

TEST_CASE("the error tells a stranger and an unusable address from silence", "[unit]") {
  const std::vector<TestHost> hosts = {{"s1", {{"a", "10.0.0.1", 24, 0, "", true}, {"b", "10.1.0.1", 24, 0, "", true}}},
                                       {"s2", {{"a", "10.0.0.2", 24, 0, "", true}}}};
  const std::vector<HostNetwork> networks = networks_of(hosts);
  ProbeOutcomes outcomes = probe(hosts, networks);
  outcomes[{1, 0, 2}] = {ProbeOutcome::Kind::kStranger, 0};
  outcomes[{1, 0, 3}] = {ProbeOutcome::Kind::kNotListening, EADDRNOTAVAIL};
  CHECK_THROWS_WITH(
      choose_addresses(networks, outcomes),
      ContainsSubstring("s2 cannot reach s1: tried 10.0.0.1 (another host's), 10.1.0.1 (not usable there: "
                        "Cannot assign requested address), and one more such pair"));
}

TEST_CASE("hosts that reach one at different addresses are told so", "[unit]") {
  const std::vector<TestHost> star = {
      {"s1", {{"eth0", "10.0.0.1", 24, 0, "a", true}, {"eth1", "10.1.0.1", 24, 0, "b", false}}},
      {"s2", {{"eth0", "10.0.0.2", 24, 0, "a", true}, {"eth1", "10.2.0.2", 24, 0, "c", false}}},
      {"s3", {{"eth1", "10.1.0.3", 24, 0, "b", false}, {"eth2", "10.2.0.3", 24, 0, "c", false}}}};
  CHECK_THROWS_WITH(chosen(star),
                    "s1 has no address that all hosts reach: s2 reaches 10.0.0.1, s3 reaches 10.1.0.1; open the "
                    "network between them or choose another with --network-interface");
  const std::vector<TestHost> families = {
      {"s1", {{"eth0", "10.0.0.1", 24, 0, "a", true}}},
      {"s2", {{"eth0", "fd00::2", 64, 0, "a", true}}},
  };
  CHECK_THROWS_WITH(chosen(families), ContainsSubstring("the hosts have no kind of network in common: s1 is reached at "
                                                        "10.0.0.1, s2 is reached at fd00::2;"));
}
