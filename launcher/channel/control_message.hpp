#pragma once

#include <string>
#include <string_view>

#include "base/codec/message_codec.hpp"
#include "launcher/channel/messages.hpp"

/// The two functions of messages.hpp, for the sources that have the fields of control messages. Such a source ends with
/// a line `template struct ControlMessage<Hello>;` for each of its messages.
namespace runjob {

template <class Message>
std::string ControlMessage<Message>::encode(const Message& message) {
  return encode_cbor(message);
}

template <class Message>
Message ControlMessage<Message>::decode(std::string_view payload) {
  return decode_cbor<Message>(payload, "a control message that cannot be read");
}

}  // namespace runjob
