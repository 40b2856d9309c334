#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace runjob::runtime {

/// Estimates the difference between another process's clock and this one's from questions and answers. The fastest
/// answer gives the best estimate, because the error is at most the time of the round trip. Only the latest answers
/// count, because clocks drift.
/// Units   nanoseconds.
/// Threads  one.
/// Source  Cristian, "Probabilistic clock synchronization", 1989.
class ClockAlignment {
 public:
  /// Adds one answer. The question was sent at `asked` and answered at `answered` by this clock; the other clock showed
  /// `theirs`.
  void add(std::int64_t asked, std::int64_t theirs, std::int64_t answered);
  /// The difference to add to this clock's time; nullopt before the first answer.
  std::optional<std::int64_t> offset() const;
  std::size_t answers() const { return samples_.size(); }

  static constexpr std::size_t kRemembered = 16;

 private:
  struct Sample {
    std::int64_t round_trip, offset;
  };
  std::deque<Sample> samples_;
};

}  // namespace runjob::runtime
