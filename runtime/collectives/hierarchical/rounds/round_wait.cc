#include "runtime/collectives/hierarchical/rounds/round_wait.hpp"

#include <algorithm>

namespace runjob::runtime {
namespace {

/// A leader asks after it has waited for so long, and again each time after as long.
constexpr std::chrono::milliseconds kQuestionAfter{200};

}  // namespace

void RoundWait::begin(std::uint64_t round) {
  round_ = round;
  limit_.reset();
}

void RoundWait::begin_limit(Clock::time_point now) {
  limit_.emplace(timeout_, now);
  moves_ = attendance_.moves();
}

RoundWait::Clock::time_point RoundWait::next_look(Rounds::Deadline deadline, const Rounds::IsBusy& is_busy) {
  const auto now = Clock::now();
  if (!limit_) {
    begin_limit(now);
    next_question_ = now + kQuestionAfter;
  }
  Clock::time_point next = deadline.value_or(Clock::time_point::max());
  if (exchange_ != nullptr) next = std::min(next, next_question_);
  return attendance_.late_rank(round_, is_busy) < 0 ? next : std::min(next, limit_->next_look());
}

bool RoundWait::is_over(Rounds::Deadline deadline, const Rounds::IsBusy& is_busy) {
  const auto now = Clock::now();
  const int late = attendance_.late_rank(round_, is_busy);
  if (limit_ && attendance_.moves() != moves_) begin_limit(now);
  if (limit_ && limit_->is_over(now) && late >= 0) throw_rank_timeout(attendance_.topology().name(late), timeout_);
  if (exchange_ != nullptr && now >= next_question_) {
    exchange_->ask(round_);
    next_question_ = now + kQuestionAfter;
  }
  return deadline && now >= *deadline;
}

}  // namespace runjob::runtime
