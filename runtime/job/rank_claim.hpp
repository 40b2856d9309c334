#pragma once

#include <string>

#include "base/unique_handle.hpp"

namespace runjob::runtime {

/// This process's claim to be a rank, from init() to shutdown(): a lock in the folder of the job's sockets, which the
/// kernel takes back when the process ends. A forked child does not have it.
/// Source   fcntl(2), "Traditional (process-associated) record locks".
/// Errors   Error(kUsage) naming the process that is the rank; it is alive, and has not left the job.
class RankClaim {
 public:
  /// `directory` empty: claims nothing, and cannot fail. Nor does it where the folder cannot be written.
  RankClaim(const std::string& directory, int rank);

 private:
  UniqueFd file_;
};

}  // namespace runjob::runtime
