#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/supervision/rank_supervisor.hpp"

namespace runjob {

/// One generation of an elastic job while it lasts.
struct Generation {
  Allocation allocation;
  std::vector<int> hosts;      ///< by index in `allocation`, the job's index of the host
  std::vector<int> processes;  ///< by rank
  std::unique_ptr<RankSupervisor> ranks;

  /// The rank of a process; -1 when it is no member.
  int rank_of(int process) const { return index_of(processes, process); }
  /// The index in `allocation` of one of the job's hosts; -1 when it has no member.
  int host_of(int host) const { return index_of(hosts, host); }

 private:
  static int index_of(const std::vector<int>& numbers, int number) {
    const auto found = std::find(numbers.begin(), numbers.end(), number);
    return found == numbers.end() ? -1 : static_cast<int>(found - numbers.begin());
  }
};

}  // namespace runjob
