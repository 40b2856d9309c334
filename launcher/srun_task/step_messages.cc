#include "launcher/srun_task/step_messages.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_integer.hpp"
#include "base/json_text.hpp"
#include "base/secrets/secret.hpp"

namespace runjob {
namespace {

using nlohmann::json;

json parse(const std::string& text) {
  json document = try_parse_json(text);
  if (!document.is_object()) throw Error(Errc::kProtocol, "a message between the tasks of a step is no JSON object");
  return document;
}

/// What json throws for a field that is missing or of another type, in our words.
template <class Read>
auto read_fields(Read read) {
  try {
    return read();
  } catch (const json::exception&) {
    throw Error(Errc::kProtocol, "a message between the tasks of a step lacks a field");
  }
}

}  // namespace

std::string encode(const StepHello& hello) {
  return strict_json_text({{"step", hello.step},
                           {"nonce", hello.nonce},
                           {"rank", hello.rank},
                           {"size", hello.size},
                           {"node", hello.node},
                           {"node_name", hello.node_name},
                           {"free_port", hello.free_port},
                           {"called", hello.called}});
}

/// The key stands on a line before the document: JSON's writer and parser would leave copies of it in memory.
std::string encode(const StepWelcome& welcome) {
  const std::string document = strict_json_text({{"nonce", welcome.nonce},
                                                 {"port", welcome.port},
                                                 {"address", welcome.address},
                                                 {"variables", welcome.variables}});
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
  return strict_json_text({{"status", end.status}, {"grace_ms", end.grace_ms}});
}

std::string encode_refusal(std::string_view nonce, const std::string& reason) {
  return json_text({{"nonce", nonce}, {"refusal", reason}});
}

StepHello parse_step_hello(const std::string& text) {
  const json document = parse(text);
  return read_fields([&] {
    StepHello hello;
    hello.step = document.at("step").get<std::string>();
    hello.nonce = document.at("nonce").get<std::string>();
    hello.rank = json_integer<int>(document.at("rank"));
    hello.size = json_integer<int>(document.at("size"));
    hello.node = json_integer<int>(document.at("node"));
    hello.node_name = document.at("node_name").get<std::string>();
    hello.free_port = json_integer<int>(document.at("free_port"));
    hello.called = json_integer<int>(document.at("called"));
    return hello;
  });
}

StepWelcome parse_step_welcome(const std::string& text, const std::string& nonce) {
  const std::size_t key_end = text.find('\n');  // a refusal has no key
  const json document = parse(key_end == std::string::npos ? text : text.substr(key_end + 1));
  return read_fields([&]() -> StepWelcome {
    if (document.at("nonce").get<std::string>() != nonce)
      throw Error(Errc::kAuth, "the answer of the step's first task is not to this task's question");
    if (document.contains("refusal")) throw Error(Errc::kUnavailable, document.at("refusal").get<std::string>());
    if (key_end == std::string::npos) throw Error(Errc::kProtocol, "the answer of the step's first task has no key");
    return {nonce, json_integer<int>(document.at("port")),
            rendezvous::JobKey::from_hex(std::string_view(text).substr(0, key_end)),
            document.at("address").get<std::string>(), document.at("variables").get<Environment>()};
  });
}

StepEnd parse_step_end(const std::string& text) {
  const json document = parse(text);
  return read_fields([&]() -> StepEnd {
    return {json_integer<int>(document.at("status")), json_integer<std::int64_t>(document.at("grace_ms"))};
  });
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
