#pragma once

#include "runtime/engine/control_message.hpp"

namespace runjob::runtime {

/// Told when a rank is known to be ready, for the timeline.
class NegotiationObserver {
 public:
  virtual ~NegotiationObserver() = default;
  virtual void rank_ready(const std::string& name, Kind kind, int rank) = 0;
};

}  // namespace runjob::runtime
