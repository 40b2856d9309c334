#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/ssh/known_hosts.hpp"
#include "launcher/ssh/ssh_target.hpp"

namespace runjob {

/// Decides whether a host is the one that it says it is, from the known_hosts files, which are read once in a job.
/// Threads  the loop's one thread.
class HostKeyCheck {
 public:
  /// The host key algorithms to offer, best first: those of keys that are known, then the others.
  /// Errors  SshProgramNeeded when libssh2 can check none of the keys that are known.
  std::string algorithms(const SshTarget& target);

  /// Returns when `key` is the host's. A new key is added to known_hosts where the target accepts it.
  /// Errors  Error(kAuth) with what is wrong and what to do.
  void check(const SshTarget& target, const PublicKey& key);

 private:
  std::vector<KnownHost>& entries_of(const SshTarget& target);
  void accept(const SshTarget& target, const PublicKey& key);

  std::map<std::vector<std::string>, std::vector<KnownHost>> entries_;  // by the files' names
};

/// Adds a line to the file, which is made with its folder (modes 0600 and 0700) where it is not there.
/// Errors  Error(kSystem).
void append_known_host(const std::string& file, const std::string& line);

}  // namespace runjob
