#pragma once

#include "runtime/engine/negotiation_observer.hpp"
#include "runtime/timeline/timeline.hpp"

namespace runjob::runtime {

/// Writes to the timeline which rank became ready when. `timeline` outlives it.
class TimelineObserver : public NegotiationObserver {
 public:
  explicit TimelineObserver(Timeline& timeline) : timeline_(timeline) {}
  void rank_ready(const std::string& name, Kind kind, int rank) override { timeline_.rank_ready(name, kind, rank); }

 private:
  Timeline& timeline_;
};

}  // namespace runjob::runtime
