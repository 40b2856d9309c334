#pragma once

#include <cstdint>
#include <string>

namespace runjob::runtime {

/// Receives the records that other ranks have made for the timeline, on the rank that writes the trace: rank 0.
/// Owner    the coordinator of the control plane.
/// Threads  the one that runs the control plane.
/// Errors   none.
class TraceReceiver {
 public:
  virtual ~TraceReceiver() = default;
  /// The time in the trace in nanoseconds, or -1 while there is no trace.
  virtual std::int64_t clock() const = 0;
  /// Adds the records of another rank, in the form in which that rank's timeline has shipped them. `whose`: the rank,
  /// for messages.
  virtual void take_records(const std::string& whose, std::string records) = 0;
};

}  // namespace runjob::runtime
