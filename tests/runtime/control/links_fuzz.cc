/// Feeds any bytes to the ends of connections between ranks. The first byte chooses: 'h' takes the rest for the
/// messages of a handshake, which a stranger without the key must not complete; 'a' for a member's address; 'f' for
/// what a member sends on a control connection, in pieces whose size is the second byte; 's' for the same on an
/// encrypted one, on which nothing may arrive.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <sys/socket.h>

#include "base/error.hpp"
#include "runtime/control/control_channel.hpp"
#include "runtime/links/handshake.hpp"
#include "runtime/links/link_address.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;
using namespace runjob::runtime;

namespace {

constexpr std::size_t kMostFrameBytes = 1000;

Secret key_of(unsigned char byte) {
  Secret key;
  key.bytes().fill(byte);
  return key;
}

/// Takes a message off the beginning of the bytes, as it comes from a socket; zeros for what is missing.
template <class Message>
Message take(std::string_view& bytes) {
  Message message{};
  const std::size_t count = std::min(bytes.size(), sizeof message);
  std::memcpy(&message, bytes.data(), count);
  bytes.remove_prefix(count);
  return message;
}

void check_handshake(std::string_view bytes) {
  static const LinkKey key = key_of(1);
  const auto hello = take<LinkHello>(bytes);
  const auto answer = take<LinkAnswer>(bytes);
  require(!is_genuine(key, hello, answer));
  static const KeyExchange exchange;
  const LinkAnswer ours = make_answer(key, hello, &exchange);
  require(is_genuine(key, hello, ours));
  static_cast<void>(make_seal_keys(key, hello, ours, /*is_connecting=*/false, exchange));
  require(!is_genuine(key, hello, ours, take<LinkProof>(bytes)));
}

void check_address(const std::string& bytes) {
  try {
    const LinkAddress address = decode_link_address(bytes, "rank 1");
    require(decode_link_address(encode(address), "rank 1") == address);
  } catch (const Error& error) {
    require(error.code() == Errc::kProtocol);
  }
}

void check_channel(std::string_view bytes, std::size_t piece, bool is_sealed) {
  static const SealKeys keys{key_of(2), key_of(3)};
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  const UniqueFd other(ends[1]);
  UniqueFd own(ends[0]);
  ControlChannel channel(is_sealed ? LinkStream(std::move(own), keys) : LinkStream(std::move(own)), kMostFrameBytes);
  ControlChannel::Memory kept;
  std::size_t received = 0;
  while (!bytes.empty() && channel.is_open()) {
    const ssize_t count = ::send(other.get(), bytes.data(), std::min(piece, bytes.size()), MSG_NOSIGNAL);
    if (count <= 0) break;
    bytes.remove_prefix(static_cast<std::size_t>(count));
    channel.receive();
    while (const auto frame = channel.next_frame()) {
      require(frame->size() <= kMostFrameBytes);
      received += frame->size() + 4;
      const std::string copy(*frame);
      if (frame->size() % 2 == 1) channel.keep_frames(kept);
      require(*frame == copy);
    }
  }
  require(!is_sealed || received == 0);
}

}  // namespace

void fuzz(std::string_view bytes) {
  if (bytes.size() < 2) return;
  switch (bytes[0]) {
    case 'h':
      check_handshake(bytes.substr(1));
      break;
    case 'a':
      check_address(std::string(bytes.substr(1)));
      break;
    case 'f':
    case 's':
      check_channel(bytes.substr(2), static_cast<unsigned char>(bytes[1]) + 1, bytes[0] == 's');
      break;
    default:
      break;
  }
}
