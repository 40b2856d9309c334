#include "launcher/ssh/files/public_key.hpp"

#include <openssl/evp.h>

#include "launcher/ssh/files/ssh_data.hpp"
#include "launcher/ssh/files/ssh_text.hpp"

namespace runjob {
namespace {

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

}  // namespace

std::string PublicKey::type() const {
  return std::string(SshDataReader(blob).string());
}

std::string PublicKey::short_type() const {
  const std::string name = type();
  if (name == "ssh-ed25519") return "ED25519";
  if (name == "ssh-rsa") return "RSA";
  if (name == "ssh-dss") return "DSA";
  if (starts_with(name, "ecdsa-sha2-")) return "ECDSA";
  if (starts_with(name, "sk-ssh-ed25519@")) return "ED25519-SK";
  if (starts_with(name, "sk-ecdsa-sha2-")) return "ECDSA-SK";
  return name;
}

std::string PublicKey::fingerprint() const {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(blob.data(), blob.size(), digest, &size, EVP_sha256(), nullptr);
  std::string text = base64_encode({reinterpret_cast<const char*>(digest), size});
  while (!text.empty() && text.back() == '=') text.pop_back();
  return "SHA256:" + text;
}

std::optional<PublicKey> parse_public_key(std::string_view text) {
  const std::string_view type = take_word(text);
  PublicKey key{base64_decode(take_word(text))};
  if (type.empty() || key.type() != type) return std::nullopt;
  return key;
}

std::string to_text(const PublicKey& key) {
  return key.type() + " " + base64_encode(key.blob);
}

}  // namespace runjob
