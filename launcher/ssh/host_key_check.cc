#include "launcher/ssh/host_key_check.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <libssh2.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/read_file.hpp"
#include "base/unique_handle.hpp"
#include "launcher/ssh/ssh_program_needed.hpp"
#include "launcher/ssh/ssh_session.hpp"

namespace runjob {
namespace {

namespace fs = std::filesystem;

struct Algorithm {
  std::string_view name;
  std::string_view key_type;
};

/// In the order of cost to the host. RSA with SHA-1 is none: today's servers do not have it, and it proves nothing.
constexpr std::array<Algorithm, 6> kAlgorithms = {{{"ssh-ed25519", "ssh-ed25519"},
                                                   {"ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256"},
                                                   {"ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384"},
                                                   {"ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521"},
                                                   {"rsa-sha2-512", "ssh-rsa"},
                                                   {"rsa-sha2-256", "ssh-rsa"}}};

bool is_usable(const Algorithm& algorithm) {
  return algorithm.key_type != "ssh-rsa" || libssh2_has_rsa_sha2();
}

std::string read_if_there(const std::string& path) {
  try {
    return read_file(path, "known hosts file");
  } catch (const Error&) {
    return "";
  }
}

/// How to call ssh so that it asks about the key; ssh reads the same configuration, but not our options.
std::string ssh_command(const SshTarget& target) {
  const std::string port = target.port == 22 ? "" : fmt::format(" -p {}", target.port);
  return fmt::format("ssh{} {}@{}", port, target.user, target.host);
}

std::string describe(const PublicKey& key) {
  return key.short_type() + " " + key.fingerprint();
}

[[noreturn]] void refuse_changed(const SshTarget& target, const PublicKey& key, const KnownHost& entry) {
  throw Error(
      Errc::kAuth,
      fmt::format("{0}: its host key has changed: it is {1}, not what {2} line {3} says; if the host was set up "
                  "anew, remove the old key with ssh-keygen -f {2} -R '{4}', else somebody may be listening in "
                  "between",
                  target.host, describe(key), entry.file, entry.line,
                  known_hosts_name(target.known_hosts_host, target.known_hosts_port)));
}

[[noreturn]] void refuse_revoked(const SshTarget& target, const PublicKey& key, const KnownHost& entry) {
  throw Error(Errc::kAuth, fmt::format("{}: its host key {} is revoked by {} line {}; the host needs a new key",
                                       target.host, describe(key), entry.file, entry.line));
}

[[noreturn]] void refuse_unknown(const SshTarget& target, const PublicKey& key) {
  throw Error(Errc::kAuth, fmt::format("{}: its host key is not known: {}; if that is the host's, accept it with "
                                       "--accept-new-host-keys or by connecting once: {}",
                                       target.host, describe(key), ssh_command(target)));
}

void write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0) throw system_error("cannot write " + path, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool ends_in_a_line(int file) {
  char last = '\n';
  const off_t size = ::lseek(file, 0, SEEK_END);
  return size <= 0 || ::pread(file, &last, 1, size - 1) != 1 || last == '\n';
}

}  // namespace

std::string HostKeyCheck::algorithms(const SshTarget& target) {
  const std::vector<KnownHost>& entries = entries_of(target);
  const std::vector<std::string> known = known_key_types(entries, target.known_hosts_host, target.known_hosts_port);
  const auto is_known = [&](const Algorithm& algorithm) {
    return std::find(known.begin(), known.end(), algorithm.key_type) != known.end();
  };
  const bool can_check = std::any_of(kAlgorithms.begin(), kAlgorithms.end(), [&](const Algorithm& algorithm) {
    return is_usable(algorithm) && is_known(algorithm);
  });
  if (!can_check && has_cert_authority(entries, target.known_hosts_host, target.known_hosts_port))
    throw SshProgramNeeded("libssh2 cannot check host certificates (@cert-authority in known_hosts)");
  if (!can_check && !known.empty())
    throw SshProgramNeeded(
        fmt::format("libssh2 {} cannot check host keys of type {}", libssh2_version(0), known.front()));
  std::string first, rest;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (is_usable(algorithm)) (is_known(algorithm) ? first : rest) += fmt::format("{},", algorithm.name);
  }
  std::string all = first + rest;
  all.pop_back();
  return all;
}

void HostKeyCheck::check(const SshTarget& target, const PublicKey& key) {
  const HostKeyVerdict verdict =
      judge_host_key(entries_of(target), target.known_hosts_host, target.known_hosts_port, key);
  switch (verdict.kind) {
    case HostKeyVerdict::Kind::kKnown:
      return;
    case HostKeyVerdict::Kind::kChanged:
      refuse_changed(target, key, *verdict.entry);
    case HostKeyVerdict::Kind::kRevoked:
      refuse_revoked(target, key, *verdict.entry);
    case HostKeyVerdict::Kind::kUnknown:
      if (target.new_host_key == SshTarget::NewHostKey::kRefuse) refuse_unknown(target, key);
      return accept(target, key);
  }
}

std::vector<HostKeyCheck::FileVersion> HostKeyCheck::versions_of(const std::vector<std::string>& files) {
  std::vector<FileVersion> versions;
  for (const std::string& file : files) {
    struct stat facts {};
    static_cast<void>(::stat(file.c_str(), &facts));  // a file that is not there has zeros
    versions.push_back(
        {static_cast<std::int64_t>(facts.st_ino), facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec});
  }
  return versions;
}

const std::vector<KnownHost>& HostKeyCheck::entries_of(const SshTarget& target) {
  Known& known = known_[target.known_hosts];
  const std::vector<FileVersion> versions = versions_of(target.known_hosts);
  if (known.versions == versions) return known.entries;
  known.versions = versions;
  known.entries = known.in_no_file;
  for (const std::string& file : target.known_hosts) {
    std::vector<KnownHost> entries = parse_known_hosts(read_if_there(file), file);
    std::move(entries.begin(), entries.end(), std::back_inserter(known.entries));
  }
  return known.entries;
}

/// A key that cannot be written down is accepted all the same, as ssh does.
void HostKeyCheck::accept(const SshTarget& target, const PublicKey& key) {
  constexpr std::size_t kSaltBytes = 20;  // what ssh reads back
  std::string salt(target.hash_known_hosts ? kSaltBytes : 0, '\0');
  if (!salt.empty() && ::getrandom(salt.data(), salt.size(), 0) != static_cast<ssize_t>(salt.size()))
    throw system_error("cannot get random bytes", errno);
  const std::string line = known_hosts_line(target.known_hosts_host, target.known_hosts_port, key, salt);
  const std::string file = target.user_known_hosts == 0 ? "" : target.known_hosts.front();
  Known& known = known_[target.known_hosts];
  const std::vector<KnownHost> accepted = parse_known_hosts(line, file);
  known.entries.insert(known.entries.end(), accepted.begin(), accepted.end());
  log::info("{}: its host key is new, and accepted: {}", target.host, describe(key));
  try {
    if (!file.empty()) {
      append_known_host(file, line);
      known.versions = versions_of(target.known_hosts);  // so that many new hosts do not read the file each time
      return;
    }
  } catch (const Error& error) {
    log::warn("{}: its host key is accepted for this job only: {}", target.host, error.what());
  }
  known.in_no_file.insert(known.in_no_file.end(), accepted.begin(), accepted.end());
}

void append_known_host(const std::string& file, const std::string& line) {
  const std::string folder = fs::path(file).parent_path().string();
  if (!folder.empty()) ::mkdir(folder.c_str(), 0700);
  const UniqueFd descriptor(::open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!descriptor) throw system_error("cannot write " + file, errno);
  // In one write, since another launch may add its own line at the same time.
  write_all(descriptor.get(), ends_in_a_line(descriptor.get()) ? line : "\n" + line, file);
}

}  // namespace runjob
