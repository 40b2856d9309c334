#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace runjob {

/// A public key as SSH sends it: the name of its type, then what that type defines (RFC 4253, section 6.6). A value.
struct PublicKey {
  std::string blob;

  /// "ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa", ...; "" when the blob is none.
  std::string type() const;

  /// The type as ssh shows it to people: "ED25519", "ECDSA", "RSA"; an unknown one as it is.
  std::string short_type() const;

  /// "SHA256:" and 43 digits of base64, as ssh-keygen -l shows it.
  std::string fingerprint() const;

  bool operator==(const PublicKey&) const = default;
};

/// The key in `TYPE BASE64 [COMMENT]`, the form of .pub files and known_hosts; nothing when it is not in that form.
std::optional<PublicKey> parse_public_key(std::string_view text);

/// "TYPE BASE64".
std::string to_text(const PublicKey& key);

}  // namespace runjob
