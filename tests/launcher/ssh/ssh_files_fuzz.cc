/// Feeds any bytes to the parsers of ssh's files: configuration, known hosts and keys. The first byte chooses the
/// parser, so that one corpus serves all.
#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "launcher/ssh/files/identity_file.hpp"
#include "launcher/ssh/files/known_hosts.hpp"
#include "launcher/ssh/files/ssh_config.hpp"
#include "launcher/ssh/files/ssh_data.hpp"
#include "launcher/ssh/files/ssh_target.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;

namespace {

/// Every Include means this text again, up to the depth at which that ends.
void check_config(const std::string& text) {
  constexpr std::size_t kMostIncluded = 30;
  std::size_t included = 0;
  const IncludeReader include = [&](const std::string&) {
    std::vector<SshConfigText> files;
    if (++included < kMostIncluded) files.push_back({text, "included"});
    return files;
  };
  const LocalAccount account{"me", "/home/me", "1000", "laptop"};
  Host host;
  host.name = "s1";
  try {
    const SshTarget target = ssh_target(host, {}, {parse_ssh_config({text, "config"}, include)}, account, "");
    require(target.port >= 1 && target.port <= 65'535);
    require(target.user_known_hosts <= target.known_hosts.size());
    require(!place_of(target).empty());
  } catch (const Error& error) {
    require(error.code() == Errc::kUsage);
  }
}

void check_known_hosts(std::string_view text) {
  const std::vector<KnownHost> entries = parse_known_hosts(text, "kh");
  for (const KnownHost& entry : entries) {
    require(!entry.names.empty() && entry.line >= 1 && !entry.key.type().empty());
    const HostKeyVerdict verdict = judge_host_key(entries, "s1", 2222, entry.key);
    require((verdict.kind == HostKeyVerdict::Kind::kUnknown) == (verdict.entry == nullptr));
  }
  static_cast<void>(known_key_types(entries, "s1", 22));
  static_cast<void>(has_cert_authority(entries, "s1", 22));
}

void check_identity(std::string_view text) {
  const std::size_t half = text.size() / 2;
  const auto identity = parse_identity(text.substr(0, half), text.substr(half));
  if (!identity) return;
  require(identity->public_key || !identity->private_key.empty());
  if (identity->public_key) require(identity->public_key->fingerprint().size() == 50);
}

void check_base64(std::string_view text) {
  require(base64_decode(base64_encode(text)) == text);
  static_cast<void>(base64_decode(text));
}

}  // namespace

void fuzz(std::string_view input) {
  if (input.empty()) return;
  const std::string text(input.substr(1));
  switch (static_cast<unsigned char>(input[0]) % 4) {
    case 0:
      check_config(text);
      break;
    case 1:
      check_known_hosts(text);
      break;
    case 2:
      check_identity(text);
      break;
    default:
      check_base64(text);
  }
}
