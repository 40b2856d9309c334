#pragma once

#include <string>

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// Notified of the events of the negotiation that the timeline records.
/// Threads  the one that runs the negotiation.
class NegotiationObserver {
 public:
  virtual ~NegotiationObserver() = default;
  /// False while notifications would be lost, so that they need not be made.
  virtual bool is_listening() const { return true; }
  /// A rank is known to be ready.
  virtual void rank_ready(const std::string& name, Kind kind, int rank) = 0;
  /// All announcements of a round have been received.
  virtual void round_ended() {}
};

}  // namespace runjob::runtime
