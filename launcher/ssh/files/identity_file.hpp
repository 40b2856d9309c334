#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/ssh/files/public_key.hpp"

namespace runjob {

/// What can be said of a private key without its passphrase.
struct IdentityFile {
  std::string path;
  std::string private_key;              ///< the file's text; "" when there is only a public key
  std::optional<PublicKey> public_key;  ///< unknown for some of the older formats without a .pub file beside them
  bool encrypted = false;
  bool is_rsa = false;           ///< also where the public key is unknown
  bool has_certificate = false;  ///< PATH-cert.pub is there
  unsigned too_open = 0;         ///< the file's mode if others may read the private key, which ssh then ignores; else 0
};

/// Judges the text of a file that is a private key in one of the forms that ssh-keygen and openssl write, or a public
/// key. `public_text` is the .pub file's beside it, or "". Nothing when it is neither. Pure.
std::optional<IdentityFile> parse_identity(std::string_view text, std::string_view public_text);

/// Reads `path` and the files beside it. Nothing when it is not there, cannot be read or is no key.
std::optional<IdentityFile> read_identity(const std::string& path);

}  // namespace runjob
