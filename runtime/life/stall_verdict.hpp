#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"
#include "runtime/life/life_message.hpp"
#include "runtime/negotiation/members.hpp"

namespace runjob::runtime {

/// An operation of one rank that has waited too long.
struct Stall {
  Status status;  ///< names the operation and the ranks that it waits for
  int rank = 0;   ///< the rank that reports it
  int late = -1;  ///< the first rank that the operation waits for
};

/// Why the operation has waited too long.
struct StallVerdict {
  Status status;
  int late = -1;           ///< the rank that is late: it waits in no operation; -1 when none is
  bool is_mutual = false;  ///< ranks wait for each other, so that none of them is late
};

/// Follows the waits from the rank that has reported the stall. Ranks that wait for each other come before a rank that
/// is late: without them the operations could not be completed either.
/// `waits`: by rank of the job, the operations in which it waits, the oldest first; none for a rank that waits in no
/// operation or has not answered. A rank that has joined is missing in no operation of that process set.
/// Pure.
StallVerdict judge_stall(const Stall& stall, const std::vector<std::vector<Wait>>& waits, const Members& members);

}  // namespace runjob::runtime
