#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "runtime/collectives/operation.hpp"

namespace runjob::runtime::cuda {

/// The last operations of one GPU, and the step that each of them has reached: the report of a rank on which one of
/// them does not end. Nothing but the text allocates memory.
/// Owner    Gpu.
/// Threads  any.
class FlightRecord {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::size_t kKept = 256;  ///< operations; a newer one takes the place of the oldest

  /// The steps of an operation, in their order. `kBegun`: its input is complete. The thread that watches the GPU
  /// notices `kBegun` and `kDone` up to a millisecond late.
  enum class Step { kSubmitted, kAgreed, kLaunched, kBegun, kDone };

  /// Adds an operation that has been submitted now; returns its number, from 1 on. Keeps the first 80 bytes of `name`.
  std::uint64_t add(std::string_view name, Kind kind, int process_set);
  /// Notes that an operation has reached `step` now, unless it has before. Ignores 0, and the number of an operation
  /// that is no longer kept.
  void reach(std::uint64_t number, Step step);

  struct Unfinished {
    Step step = Step::kSubmitted;           ///< the last one
    std::chrono::nanoseconds since_step{};  ///< the time since then
  };
  /// The first operation that is kept and not done. When there is none: as one that has just been submitted.
  Unfinished first_unfinished() const;
  /// Describes that operation: its number among all, its steps and the reason why it waits. Empty when there is none.
  std::string first_unfinished_text() const;

 private:
  static constexpr std::size_t kSteps = 5, kMostName = 80;

  struct Entry {
    std::uint64_t number = 0;  ///< 0 for none
    Kind kind = Kind::kAllreduce;
    int process_set = 0;
    Step step = Step::kDone;
    std::size_t name_bytes = 0;
    std::array<char, kMostName> name{};
    std::array<Clock::time_point, kSteps> times{};  ///< of a step that was not seen: that of the next one
  };

  const Entry* first() const REQUIRES(mutex_);
  std::string describe(const Entry& entry, Clock::time_point now) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::uint64_t count_ GUARDED_BY(mutex_) = 0;
  std::array<Entry, kKept> entries_ GUARDED_BY(mutex_);  ///< each at its number, modulo their count
};

}  // namespace runjob::runtime::cuda
