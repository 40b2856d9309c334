#pragma once

#include <chrono>
#include <vector>

namespace runjob::runtime {

using Deadline = std::chrono::steady_clock::time_point;

/// The limits of a wait for other ranks: a deadline and a cancellation.
struct WaitLimits {
  Deadline deadline;
  int cancel = -1;              ///< a descriptor that ends the wait when it becomes readable; -1 for none
  std::vector<int> names = {};  ///< the members' ranks in their job, for messages; empty if equal to the indexes
};

}  // namespace runjob::runtime
