#include "launcher/ssh/files/known_hosts.hpp"

#include <algorithm>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <optional>

#include <fmt/format.h>

#include "base/unique_handle.hpp"
#include "launcher/ssh/files/ssh_data.hpp"
#include "launcher/ssh/files/ssh_text.hpp"

namespace runjob {
namespace {

constexpr std::string_view kHashed = "|1|";
constexpr int kPortThatIsNotWritten = 22;
constexpr std::size_t kHashBytes = 20;  // of SHA-1, and of the salt

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

/// The hash of names in known_hosts: HMAC with SHA-1, keyed by each line's salt. OpenSSL's search for the algorithm
/// costs more than the hash, and a file may have thousands of lines, so one object serves all of them.
class NameHash {
 public:
  NameHash() : mac_(EVP_MAC_fetch(nullptr, "HMAC", nullptr)), context_(EVP_MAC_CTX_new(mac_.get())) {
    char digest[] = "SHA1";
    const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                     OSSL_PARAM_construct_end()};
    EVP_MAC_CTX_set_params(context_.get(), parameters);
  }

  /// "" for a salt of another size than ssh's.
  std::string operator()(std::string_view name, std::string_view salt) const {
    unsigned char hash[kHashBytes];
    std::size_t size = 0;
    const bool done = salt.size() == kHashBytes &&
                      EVP_MAC_init(context_.get(), bytes(salt), salt.size(), nullptr) == 1 &&
                      EVP_MAC_update(context_.get(), bytes(name), name.size()) == 1 &&
                      EVP_MAC_final(context_.get(), hash, &size, sizeof hash) == 1;
    return done ? std::string(reinterpret_cast<const char*>(hash), size) : "";
  }

 private:
  static const unsigned char* bytes(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  }

  UniqueHandle<EVP_MAC*, EVP_MAC_free, nullptr> mac_;
  UniqueHandle<EVP_MAC_CTX*, EVP_MAC_CTX_free, nullptr> context_;
};

bool matches_hash(const NameHash& hash, std::string_view name, std::string_view hashed) {
  hashed.remove_prefix(kHashed.size());
  const std::size_t bar = hashed.find('|');
  if (bar == std::string_view::npos) return false;
  const std::string expected = base64_decode(hashed.substr(bar + 1));
  return !expected.empty() && hash(name, base64_decode(hashed.substr(0, bar))) == expected;
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

bool matches(const NameHash& hash, std::string_view name, const KnownHost& entry) {
  const std::string_view names = entry.names;
  if (names.substr(0, kHashed.size()) == kHashed) return matches_hash(hash, name, names);
  return matches_list(name, lower_case(names));
}

std::vector<const KnownHost*> entries_naming(const std::vector<KnownHost>& entries, std::string_view name) {
  const NameHash hash;
  std::vector<const KnownHost*> found;
  for (const KnownHost& entry : entries) {
    if (matches(hash, name, entry)) found.push_back(&entry);
  }
  return found;
}

/// The entries for this one name.
HostKeyVerdict judge_under(const std::vector<KnownHost>& entries, std::string_view name, const PublicKey& key) {
  HostKeyVerdict verdict;
  for (const KnownHost* entry : entries_naming(entries, name)) {
    const bool is_same_key = entry->key == key;
    if (entry->marker == KnownHost::Marker::kCertAuthority) continue;
    if (entry->marker == KnownHost::Marker::kRevoked) {
      if (is_same_key) return {HostKeyVerdict::Kind::kRevoked, entry};
    } else if (is_same_key) {
      if (verdict.kind != HostKeyVerdict::Kind::kKnown) verdict = {HostKeyVerdict::Kind::kKnown, entry};
    } else if (verdict.kind == HostKeyVerdict::Kind::kUnknown) {
      verdict = {HostKeyVerdict::Kind::kChanged, entry};
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
  return port == kPortThatIsNotWritten ? lower_case(host) : fmt::format("[{}]:{}", lower_case(host), port);
}

HostKeyVerdict judge_host_key(const std::vector<KnownHost>& entries, std::string_view host, int port,
                              const PublicKey& key) {
  const HostKeyVerdict verdict = judge_under(entries, known_hosts_name(host, port), key);
  if (verdict.kind != HostKeyVerdict::Kind::kUnknown || port == kPortThatIsNotWritten) return verdict;
  const HostKeyVerdict without_port = judge_under(entries, known_hosts_name(host, kPortThatIsNotWritten), key);
  return without_port.kind == HostKeyVerdict::Kind::kChanged ? verdict : without_port;
}

std::vector<std::string> known_key_types(const std::vector<KnownHost>& entries, std::string_view host, int port) {
  std::vector<std::string> types;
  const auto collect = [&](const std::string& name) {
    for (const KnownHost* entry : entries_naming(entries, name)) {
      const std::string type = entry->key.type();
      const bool is_new = std::find(types.begin(), types.end(), type) == types.end();
      if (entry->marker == KnownHost::Marker::kNone && is_new) types.push_back(type);
    }
  };
  collect(known_hosts_name(host, port));
  if (types.empty() && port != kPortThatIsNotWritten) collect(known_hosts_name(host, kPortThatIsNotWritten));
  return types;
}

bool has_cert_authority(const std::vector<KnownHost>& entries, std::string_view host, int port) {
  const std::vector<const KnownHost*> found = entries_naming(entries, known_hosts_name(host, port));
  return std::any_of(found.begin(), found.end(),
                     [](const KnownHost* entry) { return entry->marker == KnownHost::Marker::kCertAuthority; });
}

std::string known_hosts_line(std::string_view host, int port, const PublicKey& key, std::string_view salt) {
  const std::string name = known_hosts_name(host, port);
  const std::string shown =
      salt.empty() ? name : fmt::format("{}{}|{}", kHashed, base64_encode(salt), base64_encode(NameHash()(name, salt)));
  return fmt::format("{} {}\n", shown, to_text(key));
}

}  // namespace runjob
