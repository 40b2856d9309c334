#include "runtime/collectives/hierarchical/host_offer.hpp"

#include <string_view>

#include <fmt/format.h>

#include "base/codec/message_codec.hpp"
#include "base/error.hpp"

namespace runjob::runtime {
namespace {

/// Addresses of other backends do not begin like this.
constexpr std::string_view kMark = "runjob hosts 2\n";

}  // namespace

void fields(auto& io, Is<HostOffer> auto& m) {
  io("sharing", m.sharing);
  io("processors", m.processors);
  io("transport", m.transport);
  io("flat", m.flat);
  io("leader", m.leader);
  io("settings", m.settings);
}

std::string encode(const HostOffer& offer) {
  return std::string(kMark) + encode_cbor(offer);
}

HostOffer decode_host_offer(const std::string& address, int rank) {
  if (!is_host_offer(address))
    throw Error(Errc::kProtocol, fmt::format("the address of rank {} is not one of a job on several hosts", rank));
  return decode_cbor<HostOffer>(std::string_view(address).substr(kMark.size()),
                                fmt::format("the address of rank {} is malformed", rank));
}

bool is_host_offer(const std::string& address) {
  return address.starts_with(kMark);
}

}  // namespace runjob::runtime
