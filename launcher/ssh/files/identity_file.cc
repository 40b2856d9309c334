#include "launcher/ssh/files/identity_file.hpp"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "base/unique_handle.hpp"
#include "launcher/ssh/files/ssh_data.hpp"

namespace runjob {
namespace {

constexpr std::size_t kMostBytes = 64 * 1024;  // a key of 16,384 bits of RSA has 13 KiB

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What lies between the lines -----BEGIN `label`----- and -----END `label`-----, without line ends.
std::string body_of(std::string_view text, std::string_view label) {
  const std::string begin = "-----BEGIN " + std::string(label) + "-----";
  const std::size_t start = text.find(begin);
  if (start == std::string_view::npos) return "";
  const std::size_t end = text.find("-----END ", start);
  if (end == std::string_view::npos) return "";
  std::string body;
  for (const char c : text.substr(start + begin.size(), end - start - begin.size())) {
    if (c != '\n' && c != '\r' && c != ' ' && c != '\t') body += c;
  }
  return body;
}

/// OpenSSH's own format has the public key in the clear, whatever protects the private one (PROTOCOL.key there).
bool judge_openssh_key(std::string_view text, IdentityFile& identity) {
  constexpr std::string_view kMagic{"openssh-key-v1\0", 15};
  const std::string body = base64_decode(body_of(text, "OPENSSH PRIVATE KEY"));
  if (std::string_view(body).substr(0, kMagic.size()) != kMagic) return false;
  SshDataReader reader(std::string_view(body).substr(kMagic.size()));
  identity.encrypted = reader.string() != "none";
  reader.string();  // how the passphrase becomes a key
  reader.string();
  const bool is_one_key = reader.number() == 1;
  identity.public_key = PublicKey{std::string(reader.string())};
  return is_one_key && !reader.failed() && !identity.public_key->type().empty();
}

/// The PEM formats do not have the public key; what kind of key it is they say in their first line, or by an object
/// identifier (RFC 5208, section 5, and RFC 8017, appendix A.1).
bool judge_pem(std::string_view text, IdentityFile& identity) {
  constexpr std::string_view kRsaEncryption = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
  if (!contains(text, "PRIVATE KEY-----")) return false;
  identity.encrypted = contains(text, "BEGIN ENCRYPTED PRIVATE KEY") || contains(text, "Proc-Type: 4,ENCRYPTED");
  identity.is_rsa =
      contains(text, "BEGIN RSA PRIVATE KEY") || contains(base64_decode(body_of(text, "PRIVATE KEY")), kRsaEncryption);
  return true;
}

/// A regular file's beginning, and its owner and mode.
struct SmallFile {
  std::string text;
  struct stat info {};
};

SmallFile read_small_file(const std::string& path) {
  SmallFile result;
  const UniqueFd file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe without a writer does not wait
  if (!file || ::fstat(file.get(), &result.info) != 0 || !S_ISREG(result.info.st_mode)) return result;
  result.text.resize(kMostBytes);
  const ssize_t bytes = ::read(file.get(), result.text.data(), result.text.size());
  result.text.resize(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  return result;
}

}  // namespace

std::optional<IdentityFile> parse_identity(std::string_view text, std::string_view public_text) {
  IdentityFile identity;
  if (contains(text, "-----BEGIN OPENSSH PRIVATE KEY-----")) {
    if (!judge_openssh_key(text, identity)) return std::nullopt;
    identity.private_key = text;
  } else if (judge_pem(text, identity)) {
    identity.public_key = parse_public_key(public_text);
    identity.private_key = text;
  } else {
    identity.public_key = parse_public_key(text);
    if (!identity.public_key) return std::nullopt;
  }
  if (identity.public_key) identity.is_rsa = identity.public_key->type() == "ssh-rsa";
  return identity;
}

std::optional<IdentityFile> read_identity(const std::string& path) {
  const SmallFile file = read_small_file(path);
  if (file.text.empty()) return std::nullopt;
  std::optional<IdentityFile> identity = parse_identity(file.text, read_small_file(path + ".pub").text);
  if (!identity) return std::nullopt;
  const bool is_exposed = file.info.st_uid == ::getuid() && (file.info.st_mode & 077) != 0;
  if (is_exposed && !identity->private_key.empty()) identity->too_open = file.info.st_mode & 07777;
  identity->path = path;
  std::error_code ignored;
  identity->has_certificate = std::filesystem::exists(path + "-cert.pub", ignored);
  return identity;
}

}  // namespace runjob
