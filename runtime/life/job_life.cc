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
        stall_.reset();
      }
      return;
    case LifeReport::Type::kSetFailed:
      if (suspicion_.ok()) suspicion_ = report.status;
      return;
    case LifeReport::Type::kCutOff:
      return enter(Phase::kEnded, LifeDecision::Type::kAbort, suspicion_.ok() ? report.status : suspicion_);
    case LifeReport::Type::kStalled:
      return stalled(rank, report);
    case LifeReport::Type::kWaits:
      return answered(rank, report);
    case LifeReport::Type::kGiveUp:
      return given_up(report);
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

void JobLife::stalled(int rank, const LifeReport& report) {
  if (!suspicion_.ok()) return;
  suspicion_ = report.status;
  stall_ = {report.status, rank, report.late};
  decisions_.push_back({.type = LifeDecision::Type::kAsk});
}

void JobLife::answered(int rank, const LifeReport& report) {
  waits_[static_cast<std::size_t>(rank)] = report.waits;
  answered_.insert(rank);
  if (stall_ && answered_.size() == members_.size()) decide_on_stall();
}

void JobLife::decide_on_stall() {
  StallVerdict verdict = judge_stall(*stall_, waits_, members_);
  enter(Phase::kEnded, LifeDecision::Type::kAbort, std::move(verdict.status));
  decisions_.back().late = verdict.late;
  decisions_.back().is_mutual = verdict.is_mutual;
}

void JobLife::given_up(const LifeReport& report) {
  if (report.process_set == 0) return enter(Phase::kEnded, LifeDecision::Type::kAbort, report.status);
  if (!given_up_.insert(report.process_set).second) return;
  decisions_.push_back(
      {.type = LifeDecision::Type::kGiveUp, .status = report.status, .process_set = report.process_set});
}

void JobLife::give_up() {
  if (!is_suspicious()) return;
  if (stall_) return decide_on_stall();
  enter(Phase::kEnded, LifeDecision::Type::kAbort, suspicion_);
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
