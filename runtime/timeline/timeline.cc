#include "runtime/timeline/timeline.hpp"

#include <utility>

#include "base/log.hpp"
#include "runtime/timeline/file_sink.hpp"
#include "runtime/timeline/trace_clock.hpp"

namespace runjob::runtime {

Timeline::Timeline(int rank, std::vector<std::string> ranks) : rank_(rank), ranks_(std::move(ranks)) {}

Timeline::~Timeline() {
  close();
}

void Timeline::start(const Options& options) {
  close();
  if (rank_ != 0 && !options.all_ranks) return;
  start_ns_ = trace_clock();
  std::shared_ptr<TraceShipment> shipment;
  std::shared_ptr<TraceSink> sink;
  if (rank_ == 0) {
    sink = std::make_shared<FileSink>(options.path, options.what, start_ns_, options.most_bytes);
  } else {
    sink = shipment = std::make_shared<TraceShipment>(wake_);
  }
  auto writer = std::make_shared<TraceWriter>(std::move(sink));
  const MutexLock lock(mutex_);
  mark_cycles_ = options.mark_cycles;
  lives_.emplace(rank_, options.all_ranks, [writer](TraceRecord record) { writer->add(std::move(record)); });
  ended_ranks_ = 0;
  shipment_ = std::move(shipment);
  writer_ = std::move(writer);
  is_on_ = true;
  if (rank_ == 0 && options.all_ranks) lives_->name_ranks(ranks_);
}

void Timeline::stop() {
  {
    const MutexLock lock(mutex_);
    if (rank_ == 0 && lives_ && lives_->has_tracks()) await_ranks();
  }
  close();
}

void Timeline::await_ranks() {
  constexpr std::chrono::seconds kMost{1};
  const auto deadline = std::chrono::steady_clock::now() + kMost;
  while (ended_ranks_ + 1 < ranks_.size()) {
    if (rank_ended_.wait_until(mutex_, deadline) == std::cv_status::timeout) return;
  }
}

void Timeline::close() {
  std::shared_ptr<TraceWriter> writer;
  std::shared_ptr<TraceShipment> shipment;
  {
    const MutexLock lock(mutex_);
    is_on_ = false;
    writer = std::exchange(writer_, nullptr);
    if (writer) shipment = shipment_;
    lives_.reset();
  }
  writer.reset();
  if (shipment) shipment->finish();
}

void Timeline::submitted(const std::string& tensor, Kind kind) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  if (lives_) lives_->submitted(tensor, kind);
}

void Timeline::rank_ready(const std::string& tensor, Kind kind, int rank, std::int64_t ns) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  if (lives_) lives_->rank_ready(tensor, kind, rank, ns != 0 ? ns : trace_clock());
}

void Timeline::set_tensors(const std::string& tensor, std::vector<TracedTensor> tensors, const std::string& suffix) {
  if (!is_on()) return;
  for (TracedTensor& each : tensors) each.name += suffix;
  const MutexLock lock(mutex_);
  if (lives_) lives_->set_tensors(tensor, std::move(tensors));
}

void Timeline::round_ended() {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  if (lives_) lives_->round_ended();
}

void Timeline::reject(const std::string& tensor) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  if (lives_) lives_->reject(tensor);
}

void Timeline::begin(const std::string& tensor, Kind kind) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  if (lives_) lives_->begin(tensor, kind);
}

void Timeline::begin_activity(const std::string& tensor, const char* activity, const char* algorithm) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  if (lives_) lives_->begin_activity(tensor, activity, algorithm);
}

void Timeline::end_activity(const std::string& tensor) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  if (lives_) lives_->end_activity(tensor);
}

void Timeline::end(const std::string& tensor, DType dtype, const Shape& shape) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  if (lives_) lives_->end(tensor, dtype, shape);
}

void Timeline::mark_cycle() {
  if (!is_on() || rank_ != 0) return;
  const MutexLock lock(mutex_);
  if (mark_cycles_ && writer_) writer_->add({.type = TraceRecord::Type::kCycle, .ns = trace_clock()});
}

std::vector<TraceShipment::Message> Timeline::take_messages() {
  std::shared_ptr<TraceShipment> shipment;
  {
    const MutexLock lock(mutex_);
    shipment = shipment_;
  }
  return shipment ? shipment->take() : std::vector<TraceShipment::Message>();
}

void Timeline::drain() {
  std::shared_ptr<TraceWriter> writer;
  std::shared_ptr<TraceShipment> shipment;
  {
    const MutexLock lock(mutex_);
    writer = writer_;
    shipment = shipment_;
  }
  if (writer) writer->drain();
  if (shipment) shipment->hurry();
}

bool Timeline::awaits_clock() {
  const MutexLock lock(mutex_);
  return shipment_ && shipment_->awaits_first_answer();
}

void Timeline::clock_answered(std::int64_t asked, std::int64_t theirs) {
  std::shared_ptr<TraceShipment> shipment;
  {
    const MutexLock lock(mutex_);
    shipment = shipment_;
  }
  if (shipment) shipment->answer(asked, theirs);
}

std::int64_t Timeline::clock() const {
  return is_on() ? trace_clock() - start_ns_ : TraceShipment::kNotRecording;
}

void Timeline::take_records(const std::string& whose, std::string records) {
  if (!records.empty() && !is_trace_text(records)) {
    if (!warned_of_text_.exchange(true))
      log::warn("timeline: {} has sent text that is no records; it is not in the trace", whose);
    return;
  }
  const MutexLock lock(mutex_);
  if (records.empty()) {
    ++ended_ranks_;
    rank_ended_.notify_all();
  } else if (lives_ && lives_->has_tracks()) {
    writer_->add({.type = TraceRecord::Type::kText, .text = std::move(records)});
  }
}

}  // namespace runjob::runtime
