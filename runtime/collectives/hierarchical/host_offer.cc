#include "runtime/collectives/hierarchical/host_offer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "runtime/collectives/hierarchical/topology.hpp"
#include "runtime/collectives/json_bytes.hpp"
#include "runtime/collectives/shm/sharing.hpp"

namespace runjob::runtime {
namespace {

using nlohmann::json;

/// No other backend's addresses begin like this.
constexpr std::string_view kMark = "runjob hosts 1\n";

}  // namespace

std::string encode(const HostOffer& offer) {
  const json document = {
      {"sharing", to_binary(offer.sharing)},
      {"transport", to_binary(offer.transport)},
      {"flat", to_binary(offer.flat)},
      {"leader",
       {{"address", offer.leader.address}, {"port", offer.leader.port}, {"token", to_binary(offer.leader.token)}}},
      {"settings", to_binary(offer.settings)}};
  std::string bytes;
  json::to_cbor(document, bytes);
  return std::string(kMark) + bytes;
}

HostOffer decode_host_offer(const std::string& address) {
  if (!is_host_offer(address)) throw Error(Errc::kProtocol, "a rank's address is not one of a job on several hosts");
  try {
    const json document = json::from_cbor(address.begin() + kMark.size(), address.end());
    const json& leader = document.at("leader");
    return {from_binary(document.at("sharing")),
            from_binary(document.at("transport")),
            from_binary(document.at("flat")),
            {leader.at("address").get<std::string>(), leader.at("port").get<std::uint16_t>(),
             from_binary(leader.at("token"))},
            from_binary(document.at("settings"))};
  } catch (const json::exception& error) {
    throw Error(Errc::kProtocol, fmt::format("a rank's address is malformed: {}", error.what()));
  }
}

bool is_host_offer(const std::string& address) {
  return address.starts_with(kMark);
}

std::optional<std::string> objection_to_hosts(const std::vector<std::string>& addresses,
                                              const std::vector<int>& hosts) {
  std::vector<HostOffer> offers;
  for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
    if (!is_host_offer(addresses[rank])) return fmt::format("rank {} has it switched off", rank);
    offers.push_back(decode_host_offer(addresses[rank]));
    if (offers.back().settings != offers.front().settings) {
      return fmt::format("rank {} has '{}', but rank 0 '{}'", rank, offers.back().settings, offers.front().settings);
    }
  }
  const Topology topology(0, hosts);
  for (int host = 0; host < topology.hosts(); ++host) {
    std::vector<std::string> sharing;
    for (const int rank : topology.ranks(host)) sharing.push_back(offers[static_cast<std::size_t>(rank)].sharing);
    if (sharing.size() == 1) continue;
    if (auto objection = objection_to_sharing(sharing, topology.ranks(host))) return objection;
  }
  return std::nullopt;
}

}  // namespace runjob::runtime
