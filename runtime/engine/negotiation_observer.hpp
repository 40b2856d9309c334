#pragma once

#include "runtime/engine/control_message.hpp"

namespace runjob::runtime {

/// Told what the timeline records. What it is told while it does not listen is lost.
class NegotiationObserver {
 public:
  virtual ~NegotiationObserver() = default;
  virtual bool is_listening() const { return true; }
  /// A rank is known to be ready.
  virtual void rank_ready(const std::string& name, Kind kind, int rank) = 0;

  /// The time in the trace in nanoseconds, or -1 while there is none.
  virtual std::int64_t clock() const { return -1; }
  /// Another rank's records.
  virtual void take_records(std::string) {}
};

}  // namespace runjob::runtime
