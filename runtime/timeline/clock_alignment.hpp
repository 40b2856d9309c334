#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace runjob::runtime {

/// How far another process's clock is from this one's, out of questions and answers. The answer that came fastest tells it
/// best: the time on the way is at most what is not known of it. Only the latest count, since clocks drift.
/// Units   nanoseconds.   Threads  one.
/// Source  Cristian, "Probabilistic clock synchronization", 1989.
class ClockAlignment {
 public:
  /// Asked at `asked` and answered at `answered` by this clock; the other one showed `theirs`.
  void add(std::int64_t asked, std::int64_t theirs, std::int64_t answered);
  /// What to add to this clock's time; nullopt before any answer.
  std::optional<std::int64_t> offset() const;
  std::size_t answers() const { return samples_.size(); }

  static constexpr std::size_t kRemembered = 16;

 private:
  struct Sample {
    std::int64_t way, offset;
  };
  std::deque<Sample> samples_;
};

}  // namespace runjob::runtime
