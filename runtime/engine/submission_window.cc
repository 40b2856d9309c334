#include "runtime/engine/submission_window.hpp"

namespace runjob::runtime {
namespace {

std::size_t bytes_of(const Signature& signature) {
  std::size_t bytes = 0;
  for (std::size_t tensor = 0; tensor < tensor_count(signature); ++tensor) {
    const Signature alone = signature_of(signature, tensor);
    bytes += static_cast<std::size_t>(element_count(alone.shape)) * size_of(wire_dtype(alone.dtype, alone.wire));
  }
  return bytes;
}

}  // namespace

void SubmissionWindow::submitted(const Signature& signature, Clock::time_point now) {
  if (!end_) end_ = now + cycle_time_;
  bytes_ += bytes_of(signature);
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
