#pragma once

#include <cstdint>

namespace runjob::runtime {

/// What a rank has sent to agree with the others on what to run, since it has joined the job.
struct Statistics {
  /// Over the star of control channels. With rounds there are only those about the life of the job.
  std::uint64_t control_messages = 0;
  std::uint64_t rounds = 0;            ///< of negotiation; 0 without rounds
  std::uint64_t rounds_with_data = 0;  ///< those in which an operation's data went along, so that it was done with them
  std::uint64_t planned_rounds = 0;    ///< those in which one number was all that was said of a bucket of operations
  // By a host's leader to other hosts, for rounds.
  std::uint64_t host_messages = 0, host_bytes = 0;

  bool operator==(const Statistics&) const = default;
};

}  // namespace runjob::runtime
