#include "launcher/ssh/known_hosts.hpp"

#include <algorithm>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <optional>

#include <fmt/format.h>

#include "launcher/ssh/ssh_data.hpp"
#include "launcher/ssh/ssh_text.hpp"

namespace runjob {
namespace {

constexpr std::string_view kHashed = "|1|";
constexpr int kDefaultPort = 22;

std::optional<KnownHost> parse_line(std::string_view line) {
  KnownHost entry;
  std::string_view names = take_word(line);
  if (names.empty() || names.front() == '#') return std::nullopt;
  if (names.front() == '@') {
    if (names != "@revoked" && names != "@cert-authority") return std::nullopt;
    entry.marker = names == "@revoked" ? KnownHost::Marker::kRevoked : KnownHost::Marker::kCertAuthority;
    names = take_word(line);
  }
  const std::optional<PublicKey> key = parse_public_key(line);
  if (names.empty() || !key) return std::nullopt;
  entry.names = names;
  entry.key = *key;
  return entry;
}

std::string hash_of(std::string_view name, std::string_view salt) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha1(), salt.data(), static_cast<int>(salt.size()), reinterpret_cast<const unsigned char*>(name.data()),
       name.size(), digest, &size);
  return {reinterpret_cast<const char*>(digest), size};
}

bool matches_hash(std::string_view name, std::string_view hashed) {
  hashed.remove_prefix(kHashed.size());
  const std::size_t bar = hashed.find('|');
  if (bar == std::string_view::npos) return false;
  const std::string salt = base64_decode(hashed.substr(0, bar));
  return !salt.empty() && hash_of(name, salt) == base64_decode(hashed.substr(bar + 1));
}

bool matches_list(std::string_view name, std::string_view list) {
  std::vector<std::string_view> patterns;
  for (;;) {
    const std::size_t comma = list.find(',');
    patterns.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return matches_patterns(name, patterns);
}

/// What is said under this one name.
HostKeyVerdict judge_under(const std::vector<KnownHost>& entries, std::string_view name, const PublicKey& key) {
  HostKeyVerdict verdict;
  for (const KnownHost& entry : entries) {
    const bool is_same_key = entry.key == key;
    if (entry.marker == KnownHost::Marker::kCertAuthority || !names_host(entry, name)) continue;
    if (entry.marker == KnownHost::Marker::kRevoked) {
      if (is_same_key) return {HostKeyVerdict::Kind::kRevoked, &entry};
    } else if (is_same_key) {
      if (verdict.kind != HostKeyVerdict::Kind::kKnown) verdict = {HostKeyVerdict::Kind::kKnown, &entry};
    } else if (verdict.kind == HostKeyVerdict::Kind::kUnknown) {
      verdict = {HostKeyVerdict::Kind::kChanged, &entry};
    }
  }
  return verdict;
}

}  // namespace

std::vector<KnownHost> parse_known_hosts(std::string_view text, std::string_view file) {
  std::vector<KnownHost> entries;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::optional<KnownHost> entry = parse_line(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!entry) continue;
    entry->file = file;
    entry->line = number;
    entries.push_back(std::move(*entry));
  }
  return entries;
}

std::string known_hosts_name(std::string_view host, int port) {
  return port == kDefaultPort ? lower_case(host) : fmt::format("[{}]:{}", lower_case(host), port);
}

bool names_host(const KnownHost& entry, std::string_view name) {
  const std::string_view names = entry.names;
  if (names.substr(0, kHashed.size()) == kHashed) return matches_hash(name, names);
  return matches_list(name, lower_case(names));
}

HostKeyVerdict judge_host_key(const std::vector<KnownHost>& entries, std::string_view host, int port,
                              const PublicKey& key) {
  const HostKeyVerdict verdict = judge_under(entries, known_hosts_name(host, port), key);
  if (verdict.kind != HostKeyVerdict::Kind::kUnknown || port == kDefaultPort) return verdict;
  const HostKeyVerdict without_port = judge_under(entries, known_hosts_name(host, kDefaultPort), key);
  return without_port.kind == HostKeyVerdict::Kind::kChanged ? verdict : without_port;
}

std::vector<std::string> known_key_types(const std::vector<KnownHost>& entries, std::string_view host, int port) {
  std::vector<std::string> types;
  const auto collect = [&](const std::string& name) {
    for (const KnownHost& entry : entries) {
      if (entry.marker != KnownHost::Marker::kNone || !names_host(entry, name)) continue;
      const std::string type = entry.key.type();
      if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
    }
  };
  collect(known_hosts_name(host, port));
  if (types.empty()) collect(known_hosts_name(host, kDefaultPort));
  return types;
}

bool has_cert_authority(const std::vector<KnownHost>& entries, std::string_view host, int port) {
  const std::string name = known_hosts_name(host, port);
  return std::any_of(entries.begin(), entries.end(), [&](const KnownHost& entry) {
    return entry.marker == KnownHost::Marker::kCertAuthority && names_host(entry, name);
  });
}

std::string known_hosts_line(std::string_view host, int port, const PublicKey& key, std::string_view salt) {
  const std::string name = known_hosts_name(host, port);
  const std::string shown =
      salt.empty() ? name : fmt::format("{}{}|{}", kHashed, base64_encode(salt), base64_encode(hash_of(name, salt)));
  return fmt::format("{} {}\n", shown, to_text(key));
}

}  // namespace runjob
