#include "launcher/ssh/files/agent_answer.hpp"

#include <utility>

#include "launcher/ssh/files/ssh_data.hpp"

namespace runjob {
namespace {

constexpr std::uint8_t kIdentitiesAnswer = 12;
constexpr std::uint8_t kSignResponse = 14;
constexpr std::uint32_t kMostKeys = 2048;

}  // namespace

std::uint32_t agent_flags(std::string_view data) {
  SshDataReader reader(data);
  reader.string();  // the session's identifier
  reader.byte();
  for (int i = 0; i < 3; ++i) reader.string();  // user, service, "publickey"
  reader.byte();
  const std::string_view algorithm = reader.string();
  if (algorithm == "rsa-sha2-256") return 2;
  if (algorithm == "rsa-sha2-512") return 4;
  return 0;
}

std::vector<AgentKey> parse_agent_keys(std::string_view answer) {
  SshDataReader reader(answer);
  if (reader.byte() != kIdentitiesAnswer) return {};
  const std::uint32_t count = reader.number();
  std::vector<AgentKey> keys;
  for (std::uint32_t i = 0; i < count && i < kMostKeys; ++i) {
    AgentKey key{{std::string(reader.string())}, std::string(reader.string())};
    if (reader.failed()) return {};
    keys.push_back(std::move(key));
  }
  return keys;
}

std::optional<std::string> parse_agent_signature(std::string_view answer) {
  SshDataReader reader(answer);
  if (reader.byte() != kSignResponse) return std::nullopt;
  SshDataReader signature(reader.string());
  signature.string();  // the algorithm
  std::string bytes(signature.string());
  if (reader.failed() || signature.failed() || bytes.empty()) return std::nullopt;
  return bytes;
}

}  // namespace runjob
