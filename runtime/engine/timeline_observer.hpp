#pragma once

#include <utility>

#include "runtime/engine/members.hpp"
#include "runtime/engine/negotiation_observer.hpp"
#include "runtime/timeline/engine_timeline.hpp"

namespace runjob::runtime {

/// Writes to the timeline which rank became ready when, and what the other ranks record. `timeline` outlives it.
class TimelineObserver : public NegotiationObserver {
 public:
  TimelineObserver(EngineTimeline& timeline, Members members) : timeline_(timeline), members_(std::move(members)) {}
  bool is_listening() const override { return timeline_.is_on(); }
  void rank_ready(const std::string& name, Kind kind, int rank) override {
    timeline_.rank_ready(name, kind, members_.rank(rank));
  }
  std::int64_t clock() const override { return timeline_.shared().clock(); }
  void take_records(std::string records) override { timeline_.shared().take_records(std::move(records)); }

 private:
  EngineTimeline& timeline_;
  const Members members_;
};

}  // namespace runjob::runtime
