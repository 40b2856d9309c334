#include "launcher/network/interface_filter.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

NetworkInterface interface(const std::string& name, const std::string& address, int prefix_length) {
  NetworkInterface result;
  result.name = name;
  result.addresses = {{address, prefix_length}};
  return result;
}

const NetworkFacts kHost = {{interface("lo", "127.0.0.1", 8), interface("eth0", "10.0.0.5", 24),
                             interface("eth1", "10.1.0.5", 24), interface("eth10", "10.2.0.5", 16),
                             interface("docker0", "172.17.0.1", 16), interface("ib0", "fd00::5", 64)}};

/// The names of what is left, in the host's order.
std::vector<std::string> left(const std::vector<std::string>& lists, const NetworkFacts& host = kHost) {
  const InterfaceFilter filter = parse_interface_filter(lists, "-x");
  std::vector<std::string> result;
  for (const NetworkInterface& each : host.interfaces) {
    if (allows(filter, host, each, each.addresses.front())) result.push_back(each.name);
  }
  return result;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a filter keeps what it names, whatever the spelling", "[unit]") {
  struct Row {
    const char* list;
    Names left;
  };
  const std::vector<Row> rows = {
      {"eth0", {"eth0"}},
      {"eth1", {"eth1"}},  // there is one, so it is no beginning of eth10
      {"eth", {"eth0", "eth1", "eth10"}},
      {"eth0,ib0", {"eth0", "ib0"}},
      {" eth0 , ib ", {"eth0", "ib0"}},
      {"=eth0,eth", {"eth0"}},
      {"= ib", {}},
      {"^lo,docker", {"eth0", "eth1", "eth10", "ib0"}},
      {"^eth", {"lo", "docker0", "ib0"}},
      {"^=eth1,doc", {"lo", "eth0", "eth10", "docker0", "ib0"}},
      {"10.0.0.0/8", {"eth0", "eth1", "eth10"}},
      {"10.1.2.3/16", {"eth1"}},  // any address stands for its network
      {"10.1.0.5", {"eth1"}},
      {"fd00::/8", {"ib0"}},
      {"fd00::5", {"ib0"}},
      {"0.0.0.0/0", {"lo", "eth0", "eth1", "eth10", "docker0"}},
      {"::/0", {"ib0"}},
      {"^172.16.0.0/12,127.0.0.0/8", {"eth0", "eth1", "eth10", "ib0"}},
      {"wlan0", {}},
  };
  for (const Row& row : rows) {
    INFO(row.list);
    CHECK(left({row.list}) == row.left);
  }
}

TEST_CASE("several lists add up, and exclusions win", "[unit]") {
  CHECK(left({"eth0", "ib0"}) == Names{"eth0", "ib0"});
  CHECK(left({"eth", "^eth1"}) == Names{"eth0", "eth10"});
  CHECK(left({"^lo", "^docker0"}) == Names{"eth0", "eth1", "eth10", "ib0"});
  CHECK(left({}).size() == kHost.interfaces.size());
}

TEST_CASE("the same word fits hosts that call their interfaces differently", "[unit]") {
  const NetworkFacts other = {{interface("enp3s0", "10.0.0.6", 24), interface("eth10", "10.2.0.6", 16)}};
  CHECK(left({"eth1"}, other) == Names{"eth10"});
  CHECK(left({"10.0.0.0/24"}, other) == Names{"enp3s0"});
}

TEST_CASE("what is named is told from what an exclusion leaves over", "[unit]") {
  const auto named = [](const std::vector<std::string>& lists, std::size_t interface) {
    const NetworkInterface& each = kHost.interfaces[interface];
    return names(parse_interface_filter(lists, "-x"), kHost, each, each.addresses.front());
  };
  CHECK(named({"docker0"}, 4));
  CHECK_FALSE(named({"^lo"}, 4));
  CHECK_FALSE(named({"docker0", "^172.17.0.0/16"}, 4));
  CHECK_FALSE(named({}, 4));
}

TEST_CASE("a filter that cannot be read says what was expected", "[unit]") {
  const auto refusal = [](const std::string& list) {
    try {
      parse_interface_filter({list}, "--network-interface");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::kUsage);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal("eth0,,eth1") ==
        "--network-interface: 'eth0,,eth1' has an empty word; expected a name or its beginning (eth0, eth), a network "
        "(10.0.0.0/8, fd00::/8) or an address, separated by commas; '^' before the list excludes, '=' means the whole "
        "name");
  CHECK_THAT(refusal(""), ContainsSubstring("has an empty word"));
  CHECK_THAT(refusal("^"), ContainsSubstring("has an empty word"));
  CHECK_THAT(refusal("eth0,^docker0"), ContainsSubstring("has '^docker0': '^' and '=' stand before the whole list"));
  CHECK_THAT(refusal("a-name-that-is-too-long"), ContainsSubstring("no name of an interface (1 to 15 characters)"));
  CHECK_THAT(refusal("eth 0"), ContainsSubstring("has 'eth 0', which is no name of an interface"));
  CHECK_THAT(refusal("10.0.0/8"), ContainsSubstring("has '10.0.0/8', which is no network"));
  CHECK_THAT(refusal("10.0.0.0/33"), ContainsSubstring("has '10.0.0.0/33', which is no network"));
  CHECK_THAT(refusal("10.0.0.0/x"), ContainsSubstring("the length of the network '10.0.0.0/x'"));
  CHECK_THAT(refusal("10.0.0.0/129"), ContainsSubstring("129"));
}
