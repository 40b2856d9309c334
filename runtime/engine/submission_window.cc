#include "runtime/engine/submission_window.hpp"

namespace runjob::runtime {

void SubmissionWindow::submitted(const Signature& signature, Clock::time_point now) {
  if (!end_) end_ = now + cycle_time_;
  bytes_ += input_bytes(signature, signature.wire);
  is_urgent_ = is_urgent_ || signature.kind == Kind::kBarrier || signature.kind == Kind::kJoin;
}

void SubmissionWindow::clear() {
  end_.reset();
  bytes_ = 0;
  is_urgent_ = false;
}

std::optional<SubmissionWindow::Clock::time_point> SubmissionWindow::closes(Clock::time_point now) const {
  if (!end_ || waiters_ > 0 || is_urgent_ || bytes_ >= enough_bytes_ || now >= *end_) return std::nullopt;
  return end_;
}

}  // namespace runjob::runtime
