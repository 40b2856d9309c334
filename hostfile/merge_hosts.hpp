#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hostfile/allocation.hpp"

namespace runjob {

inline constexpr int kMaxSlots = 65'536;  ///< on one host

/// True for two mentions of one host.
bool is_same_host(const Host& one, const Host& other);

/// Collects hosts in order. A host named again (same name in any case, same user, same port) is merged into its first
/// mention: slots add up, and GPUs are joined, each once, in the order given. The merge is refused if only one mention
/// has GPUs, or if they have different identity files, because the intention is then ambiguous.
class HostMerger {
 public:
  /// Adds `host`. Returns the reason if it contradicts an earlier mention; "" if it was added.
  [[nodiscard]] std::string add(const Host& host);

  /// The number of hosts that were added, including hosts named again. It measures the work done, which kMaxHosts
  /// limits.
  std::size_t mentions() const { return mentions_; }
  const std::vector<Host>& hosts() const { return hosts_; }

 private:
  std::vector<Host> hosts_;
  std::size_t mentions_ = 0;
  std::unordered_map<std::string, std::size_t> index_;  // index in hosts_ by name, user and port
};

}  // namespace runjob
