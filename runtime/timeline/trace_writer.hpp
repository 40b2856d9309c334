#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/timeline/trace_record.hpp"

namespace runjob::runtime {

/// The destination of records.
/// Threads  write() by one at a time.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  /// Returns false when the sink accepts no more records.
  virtual bool write(const std::vector<TraceRecord>& batch) = 0;
};

/// Takes records from any thread and passes them to a sink on its own thread, "runjob-timeline", at most some
/// milliseconds later. So a recording thread rarely has to wake another thread.
class TraceWriter {
 public:
  explicit TraceWriter(std::shared_ptr<TraceSink> sink);
  /// Writes the rest.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  void add(TraceRecord record);
  /// Returns when all records that were added before are in the sink.
  void drain();

 private:
  void write_loop();

  const std::shared_ptr<TraceSink> sink_;
  Mutex mutex_;
  ConditionVariable changed_, drained_;
  std::vector<TraceRecord> records_ GUARDED_BY(mutex_);
  bool sleeps_ GUARDED_BY(mutex_) = false;   ///< waits for a record
  bool hurries_ GUARDED_BY(mutex_) = false;  ///< true: a thread waits in drain()
  bool writes_ GUARDED_BY(mutex_) = false;
  bool stop_ GUARDED_BY(mutex_) = false;
  bool is_open_ GUARDED_BY(mutex_) = true;
  std::thread thread_;
};

}  // namespace runjob::runtime
