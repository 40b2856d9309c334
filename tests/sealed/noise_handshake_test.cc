#include "sealed/noise_handshake.hpp"

#include <string>

#include "sealed/aead.hpp"
#include "tests/catch.hpp"
#include "tests/core_dump.hpp"

using namespace runjob;
using rendezvous::JobKey;
using Role = NoiseHandshake::Role;

namespace {

const JobKey kKey = JobKey::from_hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
constexpr std::string_view kPrologue = "runjob channel 1";

Secret filled(unsigned char byte) {
  Secret secret;
  secret.bytes().fill(byte);
  return secret;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

std::string sealed(const SealKey& key, std::uint64_t counter, std::string_view text) {
  std::string out;
  seal(key, counter, "", text, out);
  return hex(out);
}

}  // namespace

// Computed with the Python package noiseprotocol 0.3.1, another implementation of the framework.
TEST_CASE("the handshake is Noise's NNpsk0, byte for byte", "[unit]") {
  NoiseHandshake initiator(Role::kInitiator, kKey, kPrologue, filled(0x11));
  NoiseHandshake responder(Role::kResponder, kKey, kPrologue, filled(0x22));
  const std::string first = initiator.write("s1");
  CHECK(hex(first) ==
        "7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13b48f9b73e858bfd9f0ce7a6e87dd2a183d6d");
  CHECK(responder.read(first) == "s1");
  const std::string second = responder.write("");
  CHECK(hex(second) ==
        "0faa684ed28867b97f4a6a2dee5df8ce974e76b7018e3f22a1c4cf2678570f20082c278654d91eeff09a508b60bc4f1f");
  CHECK(initiator.read(second) == "");
  const SealKeys ours = initiator.finish();
  const SealKeys theirs = responder.finish();
  CHECK(ours.sending == theirs.receiving);
  CHECK(ours.receiving == theirs.sending);
  CHECK(sealed(ours.sending, 0, "message 0") == "6548fba72c30d07f0805e2f0eb18cd0c74eea81189792581e1");
  CHECK(sealed(theirs.sending, 0, "message 1") == "b42f4887e672ee32c08258ae3e366da1f2f230c53c0b37fb43");
  CHECK(sealed(ours.sending, 1, "message 2") == "2e7c495864f9a02c52a70780bbb2f8312a4108848fb1263095");
}

TEST_CASE("each handshake makes other keys", "[unit]") {
  const auto keys = [] {
    NoiseHandshake initiator(Role::kInitiator, kKey, kPrologue), responder(Role::kResponder, kKey, kPrologue);
    REQUIRE(responder.read(initiator.write("x")) == "x");
    REQUIRE(initiator.read(responder.write("")) == "");
    REQUIRE(initiator.finish().sending == responder.finish().receiving);
    return initiator.finish();
  };
  const SealKeys one = keys(), other = keys();
  CHECK(one.sending != other.sending);
  CHECK(one.sending != one.receiving);
}

TEST_CASE("who does not hold the key, or means another protocol, gets no further", "[unit]") {
  NoiseHandshake initiator(Role::kInitiator, kKey, kPrologue);
  const std::string message = initiator.write("s1");
  CHECK_FALSE(NoiseHandshake(Role::kResponder, JobKey::random(), kPrologue).read(message));
  CHECK_FALSE(NoiseHandshake(Role::kResponder, kKey, "runjob channel 2").read(message));
  NoiseHandshake impostor(Role::kResponder, JobKey::random(), kPrologue);
  CHECK_FALSE(impostor.read(message));
  CHECK_FALSE(initiator.read(impostor.write("")));
}

TEST_CASE("changed and cut messages are refused", "[unit]") {
  NoiseHandshake initiator(Role::kInitiator, kKey, kPrologue);
  const std::string message = initiator.write("s1");
  for (std::size_t i = 0; i < message.size(); ++i) {
    std::string changed = message;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK_FALSE(NoiseHandshake(Role::kResponder, kKey, kPrologue).read(changed));
  }
  for (const std::size_t length : {std::size_t{0}, std::size_t{47}, message.size() - 1})
    CHECK_FALSE(NoiseHandshake(Role::kResponder, kKey, kPrologue).read(message.substr(0, length)));
  CHECK_FALSE(NoiseHandshake(Role::kResponder, kKey, kPrologue).read(message + "x"));
}

TEST_CASE("a recorded first message leads to keys that the recorder does not have", "[unit]") {
  NoiseHandshake initiator(Role::kInitiator, kKey, kPrologue);
  const std::string recorded = initiator.write("s1");
  NoiseHandshake first(Role::kResponder, kKey, kPrologue), second(Role::kResponder, kKey, kPrologue);
  REQUIRE(first.read(recorded) == "s1");
  REQUIRE(initiator.read(first.write("")) == "");
  REQUIRE(second.read(recorded) == "s1");
  second.write("");
  CHECK(second.finish().receiving != initiator.finish().sending);
}

TEST_CASE("a public key of zeros is refused", "[unit]") {
  const std::string zeros(NoiseHandshake::kOverheadBytes, '\0');
  CHECK_FALSE(NoiseHandshake(Role::kResponder, kKey, kPrologue).read(zeros));
  NoiseHandshake initiator(Role::kInitiator, kKey, kPrologue);
  initiator.write("s1");
  CHECK_FALSE(initiator.read(zeros));
}

// The programs that users run bind their functions when they begin. A test program binds them at their first calls,
// which leaves the processor's registers, with keys in them, on the stack. So this test does everything once before it
// counts.
TEST_CASE("no core dump has a key of a connection", "[unit]") {
  const auto handshake = [] {
    NoiseHandshake initiator(Role::kInitiator, kKey, kPrologue), responder(Role::kResponder, kKey, kPrologue);
    REQUIRE(responder.read(initiator.write("s1")));
    REQUIRE(initiator.read(responder.write("")));
    const SealKeys keys = initiator.finish();
    REQUIRE(responder.finish().sending == keys.receiving);
    return keys;
  };
  static_cast<void>(copies_in_core_dump(masked(handshake().sending)));
  const SealKeys keys = handshake();
  CHECK(copies_in_core_dump(masked(keys.sending)) == 0);
  CHECK(copies_in_core_dump(masked(keys.receiving)) == 0);
}
