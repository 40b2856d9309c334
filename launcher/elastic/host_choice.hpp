#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "launcher/elastic/exclusions.hpp"
#include "launcher/elastic/process_roll.hpp"

namespace runjob {

/// Chooses the host of an elastic job's next process: first those on which a process failed and is to be replaced, then
/// the others in their order.
/// Pure.
/// Threads  one.
class HostChoice {
 public:
  /// A process failed on this host.
  void prefer(int host) { preferred_.push_back(host); }
  /// A host that may be used, has a free slot, and for which `can_join`, asked last, is true; nullopt if there is none.
  /// A preference counts once.
  std::optional<int> next(const ProcessRoll& roll, const Exclusions& exclusions, Exclusions::TimePoint now,
                          const std::function<bool(int host)>& can_join);

 private:
  std::vector<int> preferred_;
};

}  // namespace runjob
