#pragma once

#include <utility>

#include "runtime/collectives/rounds.hpp"
#include "runtime/life/trace_receiver.hpp"
#include "runtime/negotiation/members.hpp"
#include "runtime/negotiation/negotiation_observer.hpp"
#include "runtime/timeline/engine_timeline.hpp"

namespace runjob::runtime {

/// Writes to the timeline when each rank became ready: the time at which it gave its message of the round.
/// Owner    `timeline` and `rounds` are lent, and outlive it.
/// Threads  as NegotiationObserver: the one that runs the negotiation.
class TimelineObserver : public NegotiationObserver {
 public:
  TimelineObserver(EngineTimeline& timeline, Members members, const Rounds& rounds)
      : timeline_(timeline), members_(std::move(members)), rounds_(rounds) {}
  bool is_listening() const override { return timeline_.is_on(); }
  void rank_ready(const std::string& name, Kind kind, int rank) override {
    if (timeline_.records_ranks()) timeline_.rank_ready(name, kind, members_.rank(rank), rounds_.given_at(rank));
  }
  void round_ended() override { timeline_.round_ended(); }

 private:
  EngineTimeline& timeline_;
  const Members members_;
  const Rounds& rounds_;
};

/// Writes the records of other ranks to the timeline.
/// Owner    `timeline` is lent, and outlives it.
/// Threads  as TraceReceiver: the one that runs the control plane.
class TimelineReceiver : public TraceReceiver {
 public:
  explicit TimelineReceiver(EngineTimeline& timeline) : timeline_(timeline) {}
  std::int64_t clock() const override { return timeline_.shared().clock(); }
  void take_records(const std::string& whose, std::string records) override {
    timeline_.shared().take_records(whose, std::move(records));
  }

 private:
  EngineTimeline& timeline_;
};

}  // namespace runjob::runtime
