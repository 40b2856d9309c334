#pragma once

#include <string>

#include "base/codec/message_codec.hpp"
#include "rendezvous/protocol.hpp"

/// The fields of the parts of protocol.hpp that other messages carry as well: see message_codec.hpp.
namespace runjob::rendezvous {

void fields(auto& io, Is<Place> auto& m) {
  io("rank", m.rank);
  io("size", m.size);
  io("local_rank", m.local_rank);
  io("local_size", m.local_size);
  io("cross_rank", m.cross_rank);
  io("cross_size", m.cross_size);
  io("generation", m.generation);
  io("hostname", m.hostname);
  io("start_timeout_seconds", m.start_timeout_seconds);
}

/// Checks the numbers that a rank uses as indices. Errors  Error(kProtocol).
void check(const Place& place);

inline nlohmann::json to_document(const Body& body) {
  return body.str();
}
inline void from_document(const nlohmann::json& value, Body& body) {
  body = value.get<std::string>();
}

}  // namespace runjob::rendezvous
