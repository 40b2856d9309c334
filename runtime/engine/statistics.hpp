#pragma once

#include <cstdint>

namespace runjob::runtime {

/// Counts of the messages with which a rank has agreed with the others on what to run, since it has joined the job.
struct Statistics {
  /// Messages over the control channels, about the life of the job.
  std::uint64_t control_messages = 0;
  std::uint64_t rounds = 0;            ///< of negotiation
  std::uint64_t rounds_with_data = 0;  ///< rounds that also moved the data of all their operations
  std::uint64_t planned_rounds = 0;    ///< rounds in which all ranks announced one bucket of operations
  // Messages for rounds from a host's leader to other hosts.
  std::uint64_t host_messages = 0, host_bytes = 0;

  bool operator==(const Statistics&) const = default;
};

}  // namespace runjob::runtime
