#include "launcher/sealed_channel/agent_call.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "base/secrets/secret.hpp"

namespace runjob {
namespace {

constexpr std::string_view kWord = "runjob-call";
constexpr std::string_view kVersion = "1";

/// The words of a line, which single spaces separate.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t space = line.find(' ');
    words.push_back(line.substr(0, space));
    if (space == std::string_view::npos) return words;
    line.remove_prefix(space + 1);
  }
}

}  // namespace

std::string encode(const AgentCall& call) {
  const std::string before = fmt::format("{} {} {} ", kWord, kVersion, call.port);
  const std::string after = fmt::format(" {}\n", fmt::join(call.addresses, " "));
  std::string key = call.key.hex();
  std::string line;
  line.reserve(before.size() + key.size() + after.size());  // growing would leave a copy of the key
  line += before;
  line += key;
  line += after;
  wipe(key);
  return line;
}

AgentCall parse_agent_call(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 5 || words[0] != kWord || words[1] != kVersion)
    throw Error(
        Errc::kProtocol,
        "standard input holds no call of this version of runjob; runjob-agent is started by runjob, not by hand");
  try {
    const int port = static_cast<int>(parse_integer(words[2], "port", 1, 65'535));
    return {{words.begin() + 4, words.end()}, port, rendezvous::JobKey::from_hex(words[3])};
  } catch (const Error& error) {
    throw Error(Errc::kProtocol, fmt::format("a call that cannot be read: {}", error.what()));
  }
}

}  // namespace runjob
