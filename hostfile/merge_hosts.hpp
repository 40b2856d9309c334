#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hostfile/allocation.hpp"

namespace runjob {

inline constexpr int kMaxSlots = 65'536;  ///< on one host

/// Collects hosts in order; a host named again (same name in any case, same user, same port) is merged into
/// its first mention:
///   slots add up; GPUs are joined, each once, in the order given; an identity file may be given once or
///   twice alike. With GPUs at one place and without at another, or with two identity files, nobody can tell
///   what was meant: that is an error.
class HostMerger {
 public:
  /// What is wrong with `host`, given what came before; "" when it was taken.
  [[nodiscard]] std::string add(const Host& host);

  /// How many hosts were added, a host named again counted again: the work done, which is what kMaxHosts
  /// bounds.
  std::size_t mentions() const { return mentions_; }
  const std::vector<Host>& hosts() const { return hosts_; }

 private:
  std::vector<Host> hosts_;
  std::size_t mentions_ = 0;
  std::unordered_map<std::string, std::size_t> index_;  // of each host's name, user and port
};

}  // namespace runjob
