#pragma once

#include "base/codec/message_codec.hpp"
#include "launcher/channel/network_facts.hpp"

/// The fields of a host's networks, for the messages that carry them: see message_codec.hpp.
namespace runjob {

void fields(auto& io, Is<InterfaceAddress> auto& m) {
  io("address", m.address);
  io("prefix_length", m.prefix_length);
}

void fields(auto& io, Is<NetworkInterface> auto& m) {
  io("name", m.name);
  io("speed_mbits", m.speed_mbits);
  io("loopback", m.loopback);
  io("point_to_point", m.point_to_point);
  io("carrier", m.carrier);
  io("default_route", m.default_route);
  io("addresses", m.addresses);
}

}  // namespace runjob
