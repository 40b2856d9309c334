/// Feeds any bytes to the filter's grammar and checks what must hold for every result on one host.
#include <string>

#include "base/error.hpp"
#include "launcher/network/candidates.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;

namespace {

NetworkInterface interface(const std::string& name, std::vector<InterfaceAddress> addresses) {
  NetworkInterface result;
  result.name = name;
  result.addresses = std::move(addresses);
  return result;
}

const NetworkFacts& host() {
  static const NetworkFacts facts = {{interface("lo", {{"127.0.0.1", 8}, {"::1", 128}}),
                                      interface("eth0", {{"10.0.0.5", 24}, {"fe80::5", 64}}),
                                      interface("ib0", {{"fd00::5", 64}}), interface("docker0", {{"172.17.0.1", 16}})}};
  return facts;
}

void check(const InterfaceFilter& filter) {
  require(!filter.included.empty() || !filter.excluded.empty());
  const auto found = candidates(host(), filter);
  require(found.size() <= 6);
  for (const Candidate& each : found) require(!each.network.empty() && (filter.included.empty() || each.named));
  InterfaceFilter opposite;  // nothing is both included and excluded
  opposite.excluded = filter.included;
  opposite.included = filter.included;
  require(filter.included.empty() || candidates(host(), opposite).empty());
}

}  // namespace

void fuzz(std::string_view input) {
  try {
    check(parse_interface_filter({std::string(input)}, "option"));
  } catch (const Error& error) {
    require(error.code() == Errc::kUsage);
  }
}
