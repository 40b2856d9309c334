#include "runtime/timeline/trace_shipment.hpp"

#include <utility>

#include "runtime/timeline/trace_clock.hpp"

namespace runjob::runtime {
namespace {

constexpr std::size_t kAnswersAtFirst = 8;
constexpr std::int64_t kAskEvery = 1'000'000'000;
constexpr std::size_t kMostEarly = 100'000;

std::string format_all(const std::vector<TraceRecord>& records, std::int64_t offset) {
  std::string text;
  for (const TraceRecord& record : records) {
    if (!text.empty()) text += ",\n";
    text += format(record, offset);
  }
  return text;
}

}  // namespace

TraceShipment::TraceShipment(std::function<void()> wake) : wake_(std::move(wake)) {
  {
    const MutexLock lock(mutex_);
    ask();
  }
  wake_();
}

bool TraceShipment::write(const std::vector<TraceRecord>& batch) {
  {
    const MutexLock lock(mutex_);
    const bool is_early = alignment_.answers() < kAnswersAtFirst;
    if (!is_asking_ && (is_early || trace_clock() - last_asked_ >= kAskEvery)) ask();
    if (!is_early) {
      messages_.push_back({.records = format_all(batch, *alignment_.offset())});
    } else if (early_.size() + batch.size() <= kMostEarly) {
      early_.insert(early_.end(), batch.begin(), batch.end());
    }
  }
  wake_();
  return true;
}

void TraceShipment::answer(std::int64_t asked, std::int64_t theirs) {
  {
    const MutexLock lock(mutex_);
    is_asking_ = false;
    if (theirs == kNotRecording) {
      alignment_ = {};
      early_.clear();
    } else {
      alignment_.add(asked, theirs, trace_clock());
      if (alignment_.answers() < kAnswersAtFirst) ask();
    }
    if (alignment_.answers() >= kAnswersAtFirst) send_early();
    send_end();
  }
  wake_();
}

bool TraceShipment::awaits_first_answer() const {
  const MutexLock lock(mutex_);
  return is_asking_ && alignment_.answers() == 0;
}

void TraceShipment::hurry() {
  const MutexLock lock(mutex_);
  if (alignment_.answers() > 0) send_early();
}

void TraceShipment::finish() {
  {
    const MutexLock lock(mutex_);
    is_finished_ = true;
    if (!is_asking_ && !early_.empty()) ask();
    send_end();
  }
  wake_();
}

void TraceShipment::send_early() {
  if (early_.empty()) return;
  messages_.push_back({.records = format_all(std::exchange(early_, {}), *alignment_.offset())});
}

/// Sends the end of the records once, when no record waits for the clock any more.
void TraceShipment::send_end() {
  if (!is_finished_ || !early_.empty()) return;
  is_finished_ = false;
  messages_.push_back({});
}

std::vector<TraceShipment::Message> TraceShipment::take() {
  const MutexLock lock(mutex_);
  for (Message& message : messages_) message.asked = trace_clock();
  return std::exchange(messages_, {});
}

void TraceShipment::ask() {
  is_asking_ = true;
  last_asked_ = trace_clock();
  messages_.push_back({.asks_clock = true});
}

}  // namespace runjob::runtime
