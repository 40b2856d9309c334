#include "launcher/srun_task/step_messages.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/codec/message_codec.hpp"
#include "base/error.hpp"
#include "base/secrets/secret.hpp"

namespace runjob {
namespace {

/// The document of the answer to a hello: a StepWelcome without its key, or a refusal.
struct StepAnswer {
  std::string nonce;
  std::optional<std::string> refusal;  ///< the reason; the other fields have no meaning then
  int port = 0;
  std::string address = {};
  Environment variables = {};
};

void fields(auto& io, Is<StepAnswer> auto& m) {
  io("nonce", m.nonce);
  io("refusal", m.refusal);
  io("port", m.port);
  io("address", m.address);
  io("variables", m.variables);
}

constexpr std::string_view kMalformed = "a message between the tasks of a step is malformed";

}  // namespace

void fields(auto& io, Is<StepHello> auto& m) {
  io("step", m.step);
  io("nonce", m.nonce);
  io("rank", m.rank);
  io("size", m.size);
  io("node", m.node);
  io("node_name", m.node_name);
  io("free_port", m.free_port);
  io("called", m.called);
}

void fields(auto& io, Is<StepEnd> auto& m) {
  io("status", m.status);
  io("grace_ms", m.grace_ms);
}

std::string encode(const StepHello& hello) {
  return encode_cbor(hello);
}

/// The key stands on a line before the document: a writer and a parser would leave copies of it in memory.
std::string encode(const StepWelcome& welcome) {
  const std::string document =
      encode_cbor(StepAnswer{welcome.nonce, std::nullopt, welcome.port, welcome.address, welcome.variables});
  std::string key = welcome.key.hex();
  std::string text;
  text.reserve(key.size() + 1 + document.size());  // growing would leave a copy too
  text += key;
  text += '\n';
  text += document;
  wipe(key);
  return text;
}

std::string encode(const StepEnd& end) {
  return encode_cbor(end);
}

std::string encode_refusal(std::string_view nonce, const std::string& reason) {
  return '\n' + encode_cbor(StepAnswer{std::string(nonce), reason});
}

StepHello parse_step_hello(const std::string& text) {
  return decode_cbor<StepHello>(text, kMalformed);
}

StepWelcome parse_step_welcome(const std::string& text, const std::string& nonce) {
  const std::string_view key = std::string_view(text).substr(0, text.find('\n'));
  const std::string_view document = std::string_view(text).substr(std::min(key.size() + 1, text.size()));
  auto answer = decode_cbor<StepAnswer>(document, kMalformed);
  if (answer.nonce != nonce)
    throw Error(Errc::kAuth, "the answer of the step's first task is not to this task's question");
  if (answer.refusal) throw Error(Errc::kUnavailable, *answer.refusal);
  if (key.empty()) throw Error(Errc::kProtocol, "the answer of the step's first task has no key");
  return {nonce, answer.port, rendezvous::JobKey::from_hex(key), std::move(answer.address),
          std::move(answer.variables)};
}

StepEnd parse_step_end(const std::string& text) {
  return decode_cbor<StepEnd>(text, kMalformed);
}

std::vector<int> step_ports(const SlurmTask& task) {
  constexpr std::size_t kDerived = 64;
  constexpr int kLowest = 10'000;
  constexpr int kHighest = 32'767;
  // FNV-1a: steps that follow each other get ports far from each other.
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const char each : task.step) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100'0000'01b3;
  std::vector<int> ports = task.reserved_ports;
  while (ports.size() < task.reserved_ports.size() + kDerived) {
    hash = (hash ^ 0xff) * 0x100'0000'01b3;
    const int port = kLowest + static_cast<int>((hash >> 32) % (kHighest - kLowest + 1));
    if (std::find(ports.begin(), ports.end(), port) == ports.end()) ports.push_back(port);
  }
  return ports;
}

}  // namespace runjob
