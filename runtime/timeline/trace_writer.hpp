#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/timeline/trace_record.hpp"

namespace runjob::runtime {

/// Where records go.
/// Threads  write() by one at a time.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  /// False when it takes nothing any more.
  virtual bool write(const std::vector<TraceRecord>& batch) = 0;
};

/// Takes records from any thread and brings them to a sink on a thread of its own, "runjob-timeline", some milliseconds
/// later at most: so that who records rarely has to wake another thread.
class TraceWriter {
 public:
  explicit TraceWriter(std::shared_ptr<TraceSink> sink);
  /// Writes what is left.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  void add(TraceRecord record);
  /// Returns when all that was added before is in the sink.
  void drain();

 private:
  void write_loop();

  const std::shared_ptr<TraceSink> sink_;
  Mutex mutex_;
  ConditionVariable changed_, drained_;
  std::vector<TraceRecord> records_ GUARDED_BY(mutex_);
  bool sleeps_ GUARDED_BY(mutex_) = false;   ///< until there is a record
  bool hurries_ GUARDED_BY(mutex_) = false;  ///< somebody waits
  bool writes_ GUARDED_BY(mutex_) = false;
  bool stop_ GUARDED_BY(mutex_) = false;
  bool is_open_ GUARDED_BY(mutex_) = true;
  std::thread thread_;
};

}  // namespace runjob::runtime
