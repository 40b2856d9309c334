#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/ssh/files/public_key.hpp"

namespace runjob {

/// One line of a known_hosts file (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).
struct KnownHost {
  enum class Marker { kNone, kRevoked, kCertAuthority };

  std::string names;  ///< patterns separated by commas, or |1|salt|hash
  PublicKey key;
  Marker marker = Marker::kNone;
  std::string file;
  int line = 0;
};

/// Parses the text of `file`. A line that cannot be parsed is skipped, as ssh does. Pure; safe on any bytes.
std::vector<KnownHost> parse_known_hosts(std::string_view text, std::string_view file);

/// The host's name in known_hosts: "s1", or "[s1]:2222" for another port than 22. In lower-case letters.
std::string known_hosts_name(std::string_view host, int port);

/// The result of looking up a host's key in known_hosts.
struct HostKeyVerdict {
  enum class Kind { kKnown, kUnknown, kChanged, kRevoked };

  Kind kind = Kind::kUnknown;
  const KnownHost* entry = nullptr;  ///< the entry that decided; none for kUnknown
};

/// Looks the key up. `entries` are in the order of the files. A host at another port than 22 that is not known by its
/// port may also be known by its name alone, as with ssh.
HostKeyVerdict judge_host_key(const std::vector<KnownHost>& entries, std::string_view host, int port,
                              const PublicKey& key);

/// The types of the known keys of the host, each once, without keys that are revoked or sign certificates. Key exchange
/// must prefer them: another of the host's keys would look like a changed one.
std::vector<std::string> known_key_types(const std::vector<KnownHost>& entries, std::string_view host, int port);

/// True if a certificate authority signs the host's keys, which only ssh can check.
bool has_cert_authority(const std::vector<KnownHost>& entries, std::string_view host, int port);

/// A new line for known_hosts, with its end. With `salt` (20 random bytes) the name is hashed.
std::string known_hosts_line(std::string_view host, int port, const PublicKey& key, std::string_view salt);

}  // namespace runjob
