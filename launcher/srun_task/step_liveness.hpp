#pragma once

#include <chrono>
#include <vector>

namespace runjob {

/// Each task asks task 0 for the job's end at least this often.
inline constexpr std::chrono::seconds kStepPoll{5};
/// A task that has asked for nothing for this long is lost.
inline constexpr std::chrono::seconds kLostAfter = 4 * kStepPoll;

/// Which tasks of a step still run, and which of them are lost. Pure: the time comes in with each call.
/// Threads  one.
class StepLiveness {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  StepLiveness(int size, TimePoint now);

  /// The task has asked for something. Ranks outside of the step are ignored.
  void seen(int rank, TimePoint now);
  void ended(int rank);
  bool all_ended() const { return running_ == 0; }

  /// Returns the running tasks that are lost; they have not ended for this object until ended() is called. Call it
  /// every kStepPoll: a call that is much later shows that SLURM had suspended the whole step, so no task is blamed for
  /// its silence.
  std::vector<int> lost(TimePoint now);

 private:
  struct Task {
    TimePoint seen;
    bool ended = false;
  };

  std::vector<Task> tasks_;  // by rank
  int running_;
  TimePoint last_check_;
};

}  // namespace runjob
