#include "runtime/timeline/trace_writer.hpp"

#include <chrono>
#include <pthread.h>
#include <utility>

namespace runjob::runtime {
namespace {

/// The longest time between the recording of an event and its writing.
constexpr std::chrono::milliseconds kPause{10};
/// When this many records wait, they are written at once.
constexpr std::size_t kMostWaiting = 4096;

}  // namespace

TraceWriter::TraceWriter(std::shared_ptr<TraceSink> sink) : sink_(std::move(sink)) {
  thread_ = std::thread([this] { write_loop(); });
}

TraceWriter::~TraceWriter() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void TraceWriter::add(TraceRecord record) {
  const MutexLock lock(mutex_);
  if (!is_open_) return;
  records_.push_back(std::move(record));
  if (sleeps_ || records_.size() == kMostWaiting) changed_.notify_one();
}

void TraceWriter::drain() {
  const MutexLock lock(mutex_);
  hurries_ = true;
  changed_.notify_one();
  while (!records_.empty() || writes_) drained_.wait(mutex_);
  hurries_ = false;
}

void TraceWriter::write_loop() {
  ::pthread_setname_np(::pthread_self(), "runjob-timeline");
  for (bool stop = false; !stop;) {
    std::vector<TraceRecord> batch;
    {
      const MutexLock lock(mutex_);
      sleeps_ = true;
      while (records_.empty() && !stop_) changed_.wait(mutex_);
      sleeps_ = false;
      stop = stop_;
      batch = std::exchange(records_, {});
      writes_ = true;
    }
    const bool is_open = sink_->write(batch);
    const MutexLock lock(mutex_);
    writes_ = false;
    is_open_ = is_open_ && is_open;
    if (!is_open_) records_.clear();
    drained_.notify_all();
    const auto next = std::chrono::steady_clock::now() + kPause;
    while (!stop_ && !hurries_ && records_.size() < kMostWaiting) {
      if (changed_.wait_until(mutex_, next) == std::cv_status::timeout) break;
    }
  }
}

}  // namespace runjob::runtime
