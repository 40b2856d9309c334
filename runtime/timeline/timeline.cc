#include "runtime/timeline/timeline.hpp"

#include <utility>

#include "runtime/timeline/file_sink.hpp"
#include "runtime/timeline/trace_clock.hpp"

namespace runjob::runtime {
namespace {

/// The ranks' "processes" have greater numbers than any tensor's.
constexpr int kFirstTrack = 1'000'000'000;

}  // namespace

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
  has_tracks_ = options.all_ranks;
  ended_ranks_ = 0;
  shipment_ = std::move(shipment);
  writer_ = std::move(writer);
  is_on_ = true;
  if (rank_ == 0 && has_tracks_) name_ranks();
}

void Timeline::stop() {
  {
    const MutexLock lock(mutex_);
    if (rank_ == 0 && writer_ && has_tracks_) await_ranks();
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
    tensors_.clear();
  }
  writer.reset();
  if (shipment) shipment->finish();
}

void Timeline::submitted(const std::string& name, Kind kind) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  if (!has_tracks_) return;
  Tensor& tensor = find(name);
  if (tensor.submitted != nullptr) return;
  tensor.submitted = negotiation_label(kind);
  record_track(Type::kTrackBegin, tensor, tensor.submitted, name);
}

void Timeline::rank_ready(const std::string& name, Kind kind, int rank) {
  if (!is_on() || rank_ != 0) return;
  const MutexLock lock(mutex_);
  Tensor& tensor = find(name);
  if (tensor.state == State::kOperating || tensor.state == State::kInActivity) {
    tensor.early.push_back({kind, rank});
  } else {
    tick(tensor, {kind, rank});
  }
}

void Timeline::reject(const std::string& name) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  Tensor& tensor = find(name);
  end_negotiation(tensor);
  end_life(tensor);
}

void Timeline::begin(const std::string& name, Kind kind) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  Tensor& tensor = find(name);
  end_negotiation(tensor);
  tensor.operation = operation_label(kind);
  record_begin(tensor, name, tensor.operation);
  tensor.state = State::kOperating;
}

void Timeline::begin_activity(const std::string& name, const char* activity, const char* algorithm) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  Tensor& tensor = find(name);
  if (tensor.state != State::kOperating) return;
  tensor.activity = activity;
  record_begin(tensor, name, activity, algorithm);
  tensor.state = State::kInActivity;
}

void Timeline::end_activity(const std::string& name) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  end_activity(find(name));
}

void Timeline::end(const std::string& name, DType dtype, const Shape& shape) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  Tensor& tensor = find(name);
  if (tensor.state != State::kOperating && tensor.state != State::kInActivity) {
    end_negotiation(tensor);
    return end_life(tensor);
  }
  end_activity(tensor);
  TraceRecord result{.type = Type::kResult, .pid = tensor.pid, .ns = trace_clock(), .dtype = dtype, .shape = shape};
  if (has_tracks_) {
    TraceRecord of_track = result;
    of_track.type = Type::kTrackResult;
    of_track.id = tensor.pid;
    of_track.pid = track();
    of_track.label = tensor.operation;
    record(std::move(of_track));
  }
  if (rank_ == 0) record(std::move(result));
  tensor.state = State::kIdle;
  end_life(tensor);
}

void Timeline::mark_cycle() {
  if (!is_on() || rank_ != 0) return;
  const MutexLock lock(mutex_);
  if (mark_cycles_) record({.type = Type::kCycle, .ns = trace_clock()});
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
  {
    const MutexLock lock(mutex_);
    writer = writer_;
  }
  if (writer) writer->drain();
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

void Timeline::take_records(std::string records) {
  const MutexLock lock(mutex_);
  if (records.empty()) {
    ++ended_ranks_;
    rank_ended_.notify_all();
  } else if (has_tracks_) {
    record({.type = Type::kText, .text = std::move(records)});
  }
}

Timeline::Tensor& Timeline::find(const std::string& name) {
  Tensor& tensor = tensors_[name];
  if (tensor.pid != 0) return tensor;
  tensor.pid = static_cast<int>(tensors_.size());
  if (rank_ == 0) record({.type = Type::kTensor, .pid = tensor.pid, .text = name});
  return tensor;
}

void Timeline::tick(Tensor& tensor, Tick tick) {
  if (tensor.state == State::kIdle) {
    record_tensor(Type::kBegin, tensor, negotiation_label(tick.kind));
    tensor.state = State::kNegotiating;
  }
  record({.type = Type::kTick, .pid = tensor.pid, .id = tick.rank, .ns = trace_clock()});
}

void Timeline::record(TraceRecord record) {
  if (writer_) writer_->add(std::move(record));
}

/// In the tensor's own "process", where it is written.
void Timeline::record_tensor(Type type, const Tensor& tensor, const char* label) {
  if (rank_ == 0) record({.type = type, .pid = tensor.pid, .ns = trace_clock(), .label = label});
}

/// On this rank's track, if there is one.
void Timeline::record_track(Type type, const Tensor& tensor, const char* label, const std::string& name,
                            const char* algorithm) {
  if (!has_tracks_) return;
  record({.type = type,
          .pid = track(),
          .id = tensor.pid,
          .ns = trace_clock(),
          .label = label,
          .algorithm = algorithm,
          .text = name});
}

void Timeline::record_begin(const Tensor& tensor, const std::string& name, const char* label, const char* algorithm) {
  if (rank_ == 0)
    record({.type = Type::kBegin, .pid = tensor.pid, .ns = trace_clock(), .label = label, .algorithm = algorithm});
  record_track(Type::kTrackBegin, tensor, label, name, algorithm);
}

/// Whatever it is in the middle of.
void Timeline::end_negotiation(Tensor& tensor) {
  if (const char* label = std::exchange(tensor.submitted, nullptr)) record_track(Type::kTrackEnd, tensor, label);
  end_activity(tensor);
  if (tensor.state == State::kIdle) return;
  if (tensor.state == State::kOperating) record_track(Type::kTrackEnd, tensor, tensor.operation);
  record_tensor(Type::kEnd, tensor);
  tensor.state = State::kIdle;
}

void Timeline::end_activity(Tensor& tensor) {
  if (tensor.state != State::kInActivity) return;
  record_tensor(Type::kEnd, tensor);
  record_track(Type::kTrackEnd, tensor, tensor.activity);
  tensor.state = State::kOperating;
}

void Timeline::end_life(Tensor& tensor) {
  for (const Tick& early : std::exchange(tensor.early, {})) tick(tensor, early);
}

void Timeline::name_ranks() {
  const int count = static_cast<int>(ranks_.size());
  for (int rank = 0; rank < count; ++rank) {
    record({.type = Type::kRank,
            .pid = kFirstTrack + rank,
            .id = rank - count,
            .text = ranks_[static_cast<std::size_t>(rank)]});
  }
}

int Timeline::track() const {
  return kFirstTrack + rank_;
}

}  // namespace runjob::runtime
