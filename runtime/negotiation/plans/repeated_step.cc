#include "runtime/negotiation/plans/repeated_step.hpp"

#include <algorithm>
#include <iterator>

namespace runjob::runtime {
namespace {

constexpr std::size_t kLate = 128;

/// The index at which the least of all rotations of `values` begins.
std::size_t least_rotation(const std::vector<std::uint64_t>& values) {
  const std::size_t size = values.size();
  const auto is_less = [&](std::size_t a, std::size_t b) {
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t of_a = values[(a + i) % size], of_b = values[(b + i) % size];
      if (of_a != of_b) return of_a < of_b;
    }
    return false;
  };
  std::size_t least = 0;
  for (std::size_t start = 1; start < size; ++start) least = is_less(start, least) ? start : least;
  return least;
}

}  // namespace

std::uint32_t RepeatedStep::next(std::uint64_t operation) {
  if (past_.size() == 2 * kLongest) past_.erase(past_.begin(), past_.begin() + kLongest / 2);
  past_.push_back(operation);
  const bool is_missed = !expected(operation);
  misses_ = is_missed ? misses_ + 1 : 0;
  if (seen_ == kLate) {  // what was long ago counts less
    seen_ /= 2;
    missed_ /= 2;
  }
  ++seen_;
  missed_ += is_missed ? 1 : 0;
  if (is_missed) {
    const std::optional<std::size_t> length = repeated_length();
    if (length && may_become(*length)) become(*length);
  }
  for (std::size_t i = 0; i < step_.size(); ++i) {
    const std::size_t place = (next_ + i) % step_.size();
    if (step_[place].operation != operation) continue;
    next_ = (place + 1) % step_.size();
    return step_[place].count;
  }
  return 0;
}

bool RepeatedStep::may_become(std::size_t length) const {
  constexpr std::size_t kMissedOneOf = 8;
  if (misses_ > step_.size()) return true;
  return length > step_.size() && (step_.size() < 2 || missed_ * kMissedOneOf >= seen_);
}

bool RepeatedStep::is_past_twice(std::size_t length) const {
  const auto half = past_.end() - static_cast<std::ptrdiff_t>(length);
  return std::equal(half, past_.end(), half - static_cast<std::ptrdiff_t>(length));
}

/// The length of the shortest sequence that has just come twice in a row.
std::optional<std::size_t> RepeatedStep::repeated_length() const {
  for (std::size_t length = 1; 2 * length <= past_.size() && length <= kLongest; ++length) {
    if (is_past_twice(length)) return length;
  }
  return std::nullopt;
}

/// The step is the same wherever in it a rank recognises it: it begins with its least rotation. The operation that was
/// submitted last is the one that is expected.
void RepeatedStep::become(std::size_t length) {
  const std::vector<std::uint64_t> operations(past_.end() - static_cast<std::ptrdiff_t>(length), past_.end());
  const std::size_t first = least_rotation(operations);
  step_.clear();
  for (std::size_t i = 0; i < length; ++i) {
    const std::uint64_t operation = operations[(first + i) % length];
    const auto is_equal = [&](const Place& place) { return place.operation == operation; };
    step_.push_back({operation, static_cast<std::uint32_t>(std::count_if(step_.begin(), step_.end(), is_equal))});
  }
  next_ = (2 * length - 1 - first) % length;
  misses_ = seen_ = missed_ = 0;
}

}  // namespace runjob::runtime
