#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/timeline/clock_alignment.hpp"
#include "runtime/timeline/trace_writer.hpp"

namespace runjob::runtime {

/// Sends a rank's records to rank 0's file, with the times of rank 0's trace. The first records wait until rank 0 has
/// answered some questions about its clock, or for hurry(). While rank 0 records nothing, no records are kept.
/// Threads  any.
class TraceShipment : public TraceSink {
 public:
  /// A message to rank 0.
  struct Message {
    bool asks_clock = false;   ///< true: asks for the time in the trace
    std::int64_t asked = 0;    ///< this rank's clock, which comes back with the answer
    std::string records = {};  ///< set if the message does not ask; empty: the last message
  };
  /// Rank 0's answer while it records nothing.
  static constexpr std::int64_t kNotRecording = -1;

  /// `wake` is called whenever there is a message to take.
  explicit TraceShipment(std::function<void()> wake);

  bool write(const std::vector<TraceRecord>& batch) override;
  /// Takes rank 0's answer about its clock.
  /// Units  nanoseconds: `asked` of this rank's steady clock, `theirs` since the start of the trace.
  void answer(std::int64_t asked, std::int64_t theirs);
  /// True before rank 0's first answer: no record can be sent yet.
  bool awaits_first_answer() const;
  /// The records that wait for more answers leave with the next take(), if there was one answer: rank 0 may take no
  /// messages after those.
  void hurry();
  std::vector<Message> take();
  /// Called after the last write().
  void finish();

 private:
  void ask() REQUIRES(mutex_);
  void send_early() REQUIRES(mutex_);
  void send_end() REQUIRES(mutex_);

  const std::function<void()> wake_;
  mutable Mutex mutex_;
  ClockAlignment alignment_ GUARDED_BY(mutex_);
  std::int64_t last_asked_ GUARDED_BY(mutex_) = 0;
  bool is_asking_ GUARDED_BY(mutex_) = false;
  std::vector<TraceRecord> early_ GUARDED_BY(mutex_);  ///< records from before the first answers
  std::vector<Message> messages_ GUARDED_BY(mutex_);
  bool is_finished_ GUARDED_BY(mutex_) = false;
};

}  // namespace runjob::runtime
