#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launcher/ssh/files/known_hosts.hpp"
#include "launcher/ssh/files/ssh_target.hpp"

namespace runjob {

/// Checks a host's identity against the known_hosts files, which are read again when they have changed: a host that
/// joins an elastic job may have become known after the job was started.
/// Threads  the loop's one thread.
class HostKeyCheck {
 public:
  /// The host key algorithms to offer, best first: those of the known keys, then the others.
  /// Errors  SshProgramNeeded when libssh2 can check none of the known keys.
  std::string algorithms(const SshTarget& target);

  /// Returns if `key` is the host's. A new key is added to known_hosts if the target accepts it.
  /// Errors  Error(kAuth) with the problem and the remedy.
  void check(const SshTarget& target, const PublicKey& key);

 private:
  using FileVersion = std::array<std::int64_t, 4>;  // which file it is, its size, and when it was changed
  struct Known {
    std::vector<FileVersion> versions;  // that were read; of no file at first
    std::vector<KnownHost> entries;     // what the files have, and what was accepted
    std::vector<KnownHost> in_no_file;  // accepted for this job only
  };

  static std::vector<FileVersion> versions_of(const std::vector<std::string>& files);
  const std::vector<KnownHost>& entries_of(const SshTarget& target);
  void accept(const SshTarget& target, const PublicKey& key);

  std::map<std::vector<std::string>, Known> known_;  // by the names of the files
};

/// Adds a line to the file. The file and its folder are created (modes 0600 and 0700) if they do not exist.
/// Errors  Error(kSystem).
void append_known_host(const std::string& file, const std::string& line);

}  // namespace runjob
