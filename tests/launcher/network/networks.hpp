#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/network/choose_addresses.hpp"

/// Networks of test hosts as tables. A cable joins interfaces; what is on none is each host's own.
namespace runjob {

struct TestInterface {
  std::string name;
  std::string address;
  int prefix_length = 24;
  int speed_mbits = 0;
  std::string cable;  ///< "" = none
  bool default_route = false;
};

struct TestHost {
  std::string name;
  std::vector<TestInterface> interfaces;
};

inline NetworkFacts facts_of(const TestHost& host) {
  NetworkFacts facts;
  NetworkInterface loopback;
  loopback.name = "lo";
  loopback.loopback = true;
  loopback.addresses = {{"127.0.0.1", 8}, {"::1", 128}};
  facts.interfaces.push_back(loopback);
  for (const TestInterface& each : host.interfaces) {
    NetworkInterface interface;
    interface.name = each.name;
    interface.speed_mbits = each.speed_mbits;
    interface.default_route = each.default_route;
    interface.addresses = {{each.address, each.prefix_length}};
    facts.interfaces.push_back(interface);
  }
  return facts;
}

inline std::vector<HostNetwork> networks_of(const std::vector<TestHost>& hosts, const InterfaceFilter& filter = {}) {
  std::vector<HostNetwork> result;
  for (const TestHost& host : hosts) {
    NetworkFacts facts = facts_of(host);
    std::vector<Candidate> found = candidates(facts, filter);
    result.push_back({host.name, std::move(facts), std::move(found)});
  }
  return result;
}

/// Cables between which packets are forwarded.
using Routes = std::set<std::pair<std::string, std::string>>;

/// What a connection comes to: an address that the host has itself leads back to it, where nobody of ours answers.
inline ProbeOutcome connect(const TestHost& from, const TestHost& to, const std::string& address,
                            const Routes& routes) {
  for (const TestInterface& own : from.interfaces) {
    if (own.address == address) return {ProbeOutcome::Kind::kFailed, ECONNREFUSED};
  }
  for (const TestInterface& target : to.interfaces) {
    if (target.address != address || target.cable.empty()) continue;
    for (const TestInterface& own : from.interfaces) {
      if (own.cable == target.cable || routes.count({own.cable, target.cable}) != 0) {
        return {ProbeOutcome::Kind::kReached, 0};
      }
    }
  }
  const bool is_loopback = address == "127.0.0.1" || address == "::1";
  return {ProbeOutcome::Kind::kFailed, is_loopback ? ECONNREFUSED : ETIMEDOUT};
}

inline ProbeOutcomes probe(const std::vector<TestHost>& hosts, const std::vector<HostNetwork>& networks,
                           const Routes& routes = {}) {
  ProbeOutcomes outcomes;
  const int count = static_cast<int>(hosts.size());
  for (int from = 0; from < count; ++from) {
    for (const int to : probe_targets(from, count)) {
      const auto& found = networks[static_cast<std::size_t>(to)].candidates;
      for (std::size_t i = 0; i < found.size(); ++i) {
        outcomes[{from, to, static_cast<int>(i)}] = connect(
            hosts[static_cast<std::size_t>(from)], hosts[static_cast<std::size_t>(to)], found[i].address, routes);
      }
    }
  }
  return outcomes;
}

}  // namespace runjob
