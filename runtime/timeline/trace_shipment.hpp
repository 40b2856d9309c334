#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/timeline/clock_alignment.hpp"
#include "runtime/timeline/trace_writer.hpp"

namespace runjob::runtime {

/// Records of a rank on their way to rank 0's file, with the times of rank 0's trace. What is recorded before the first
/// answer about its clock waits for it; while rank 0 records nothing, nothing is kept.
/// Threads  any.
class TraceShipment : public TraceSink {
 public:
  /// What is to be sent to rank 0.
  struct Message {
    bool asks_clock = false;   ///< what time is it in the trace?
    std::int64_t asked = 0;    ///< own clock, to come back with the answer
    std::string records = {};  ///< if it does not ask; empty: there will be no more
  };
  /// Rank 0's answer while it records nothing.
  static constexpr std::int64_t kNotRecording = -1;

  /// `wake`: called whenever there is something to take.
  explicit TraceShipment(std::function<void()> wake);

  bool write(const std::vector<TraceRecord>& batch) override;
  /// Units  nanoseconds: of this rank's steady clock, and since the trace began.
  void answer(std::int64_t asked, std::int64_t theirs);
  std::vector<Message> take();
  /// After the last write().
  void finish();

 private:
  void ask() REQUIRES(mutex_);
  void say_end() REQUIRES(mutex_);

  const std::function<void()> wake_;
  Mutex mutex_;
  ClockAlignment alignment_ GUARDED_BY(mutex_);
  std::int64_t last_asked_ GUARDED_BY(mutex_) = 0;
  bool is_asking_ GUARDED_BY(mutex_) = false;
  std::vector<TraceRecord> early_ GUARDED_BY(mutex_);  ///< there is no answer yet
  std::vector<Message> messages_ GUARDED_BY(mutex_);
  bool is_finished_ GUARDED_BY(mutex_) = false;
};

}  // namespace runjob::runtime
