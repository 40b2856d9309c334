#include "runtime/life/job_life.hpp"

#include <utility>

#include <fmt/format.h>

#include "runtime/life/goodbye.hpp"

namespace runjob::runtime {

void JobLife::receive(int rank, const LifeReport& report) {
  if (phase_ == Phase::kEnded) return;
  switch (report.type) {
    case LifeReport::Type::kGoodbye:
      return goodbye(rank, report.status);
    case LifeReport::Type::kDrained:
      return drained(rank);
    case LifeReport::Type::kFailed:
      if (suspicion_.ok() || explains_more(report.status)) {
        suspicion_ =
            Status(report.status.code(), fmt::format("{}: {}", rank_text(rank, members_), report.status.message()));
      }
      return;
    case LifeReport::Type::kSetFailed:
      if (suspicion_.ok()) suspicion_ = report.status;
      return;
    case LifeReport::Type::kCutOff:
      return enter(Phase::kEnded, LifeDecision::Type::kAbort, suspicion_.ok() ? report.status : suspicion_);
    case LifeReport::Type::kClock:
    case LifeReport::Type::kTrace:
      return;
  }
}

/// A rank that receives bytes which somebody has changed ends the connection. The rank at its other end sees only the
/// end, and may be the first to report it.
bool JobLife::explains_more(const Status& status) const {
  return status.code() == Errc::kAuth && suspicion_.code() != Errc::kAuth;
}

void JobLife::lost(int rank, int error) {
  if (phase_ == Phase::kEnded) return;
  if (departing_.count(rank) != 0) return drained(rank);
  enter(Phase::kEnded, LifeDecision::Type::kAbort,
        Status(Errc::kPeerLost, fmt::format("{} is gone: it ended or lost its connection without calling shutdown()",
                                            rank_text(rank, members_))));
  if (error != 0) decisions_.back().lost = rank;
}

void JobLife::give_up() {
  if (is_suspicious()) enter(Phase::kEnded, LifeDecision::Type::kAbort, suspicion_);
}

std::vector<LifeDecision> JobLife::take() {
  return std::exchange(decisions_, {});
}

void JobLife::goodbye(int rank, const Status& why) {
  departing_.insert(rank);
  if (phase_ != Phase::kRunning) return;
  enter(Phase::kLeaving, LifeDecision::Type::kLeaving,
        why.ok() ? goodbye_reason(rank_text(rank, members_), Goodbye::kShutdown) : why);
}

void JobLife::drained(int rank) {
  if (phase_ != Phase::kLeaving) return;
  drained_.insert(rank);
  if (drained_.size() == members_.size()) enter(Phase::kEnded, LifeDecision::Type::kReleased, {});
}

void JobLife::enter(Phase phase, LifeDecision::Type type, Status status) {
  phase_ = phase;
  decisions_.push_back({.type = type, .status = std::move(status)});
}

}  // namespace runjob::runtime
