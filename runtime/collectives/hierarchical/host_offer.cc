#include "runtime/collectives/hierarchical/host_offer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "runtime/collectives/json_bytes.hpp"

namespace runjob::runtime {
namespace {

using nlohmann::json;

/// Addresses of other backends do not begin like this.
constexpr std::string_view kMark = "runjob hosts 1\n";

}  // namespace

std::string encode(const HostOffer& offer) {
  const json document = {{"sharing", to_binary(offer.sharing)},     {"processors", to_binary(offer.processors)},
                         {"transport", to_binary(offer.transport)}, {"flat", to_binary(offer.flat)},
                         {"leader", to_binary(offer.leader)},       {"settings", to_binary(offer.settings)}};
  return std::string(kMark) + cbor_bytes(document);
}

HostOffer decode_host_offer(const std::string& address, int rank) {
  if (!is_host_offer(address))
    throw Error(Errc::kProtocol, fmt::format("the address of rank {} is not one of a job on several hosts", rank));
  try {
    const json document = parse_cbor(std::string_view(address).substr(kMark.size()));
    return {from_binary(document.at("sharing")),   from_binary(document.at("processors")),
            from_binary(document.at("transport")), from_binary(document.at("flat")),
            from_binary(document.at("leader")),    from_binary(document.at("settings"))};
  } catch (const json::exception& error) {
    throw Error(Errc::kProtocol, fmt::format("the address of rank {} is malformed: {}", rank, error.what()));
  }
}

bool is_host_offer(const std::string& address) {
  return address.starts_with(kMark);
}

}  // namespace runjob::runtime
