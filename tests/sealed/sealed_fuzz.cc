/// Attacks a handshake and a sealed stream with any bytes. The first byte chooses: 'h' gives the rest to a responder,
/// and then to an initiator, in place of the other side's message; 'x' changes a real message by them (exclusive or);
/// 'o' gives them to a connection's opener; 's' changes a sealed stream by them, of which only an unchanged beginning
/// may come out. The keys are new each time: libFuzzer sees the comparison of an authenticator, and could use it with
/// the same key.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "sealed/noise_handshake.hpp"
#include "sealed/sealed_records.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;

namespace {

constexpr std::string_view kPrologue = "runjob channel 1";
constexpr std::string_view kNode = "s1";

std::string changed(std::string text, std::string_view by) {
  for (std::size_t i = 0; i < std::min(text.size(), by.size()); ++i) text[i] = static_cast<char>(text[i] ^ by[i]);
  return text;
}

void check_handshake(std::string_view bytes, bool is_change) {
  const rendezvous::JobKey key = rendezvous::JobKey::random();
  NoiseHandshake initiator(NoiseHandshake::Role::kInitiator, key, kPrologue);
  NoiseHandshake responder(NoiseHandshake::Role::kResponder, key, kPrologue);
  const std::string real = initiator.write(kNode);
  const std::string call = is_change ? changed(real, bytes) : std::string(bytes);
  const auto payload = responder.read(call);
  require(payload.has_value() == (call == real));
  if (!payload) return static_cast<void>(initiator.read(bytes));
  require(*payload == kNode);
  const std::string answer = responder.write("");
  require(initiator.read(answer).has_value());
  require(initiator.finish().sending == responder.finish().receiving);
}

void check_stream(std::string_view bytes, bool is_change) {
  const SealKey key = rendezvous::JobKey::random().bytes();
  const std::string plain(3000, 'p');
  std::string sealed;
  Sealer sealer(key);
  for (std::size_t at = 0; at < plain.size(); at += 1000) sealer.seal(std::string_view(plain).substr(at, 1000), sealed);
  Opener opener(key);
  std::string opened;
  try {
    opener.feed(is_change ? changed(sealed, bytes) : std::string(bytes), opened);
  } catch (const Error& error) {
    require(error.code() == Errc::kAuth);
  }
  require(is_change ? plain.starts_with(opened) : opened.empty());
}

}  // namespace

void fuzz(std::string_view input) {
  if (input.empty()) return;
  const std::string_view bytes = input.substr(1);
  switch (input[0]) {
    case 'h':
      check_handshake(bytes, false);
      break;
    case 'x':
      check_handshake(bytes, true);
      break;
    case 'o':
      check_stream(bytes, false);
      break;
    case 's':
      check_stream(bytes, true);
      break;
    default:
      break;
  }
}
