#include "runtime/timeline/tensor_lives.hpp"

#include <algorithm>
#include <utility>

#include "runtime/timeline/trace_clock.hpp"

namespace runjob::runtime {
namespace {

/// The ranks' "processes" have greater ids than any tensor's.
constexpr int kFirstTrack = 1'000'000'000;

}  // namespace

TensorLives::TensorLives(int rank, bool has_tracks, Record record)
    : rank_(rank), has_tracks_(has_tracks), record_(std::move(record)), start_ns_(trace_clock()) {}

void TensorLives::name_ranks(const std::vector<std::string>& ranks) {
  const int count = static_cast<int>(ranks.size());
  for (int rank = 0; rank < count; ++rank) {
    record_({.type = Type::kRank,
             .pid = kFirstTrack + rank,
             .id = rank - count,
             .text = ranks[static_cast<std::size_t>(rank)]});
  }
}

void TensorLives::submitted(const std::string& name, Kind kind) {
  if (!has_tracks_) return;
  Tensor& tensor = find(name);
  if (tensor.submitted != nullptr) return;
  tensor.submitted = negotiation_label(kind);
  record_track(Type::kTrackBegin, tensor, tensor.submitted, name);
}

void TensorLives::rank_ready(const std::string& name, Kind kind, int rank, std::int64_t ns) {
  if (rank_ != 0) return;
  Tensor& tensor = find(name);
  add_tick(tensor, {kind, rank, ns});
  for (const auto& [row, moved] : tensor.moved) add_tick(*row, {kind, rank, ns});
}

void TensorLives::set_tensors(const std::string& name, std::vector<TracedTensor> tensors) {
  if (rank_ != 0) return;
  Tensor& tensor = find(name);
  tensor.moved.clear();
  for (TracedTensor& moved : tensors) {
    Tensor& row = find(moved.name);
    if (&row == &tensor) continue;
    row.is_moved = true;
    if (moved.since_ns != 0 && row.state == State::kIdle) {
      const std::int64_t since = std::max(moved.since_ns, row.free_ns);
      record_({.type = Type::kBegin, .pid = row.pid, .ns = since, .label = "WAIT_FOR_OTHER_TENSOR_DATA"});
      record_tensor(Type::kEnd, row);
      row.free_ns = trace_clock();
    }
    tensor.moved.emplace_back(&row, std::move(moved));
  }
}

void TensorLives::add_tick(Tensor& tensor, Tick tick) {
  if (!std::exchange(tensor.is_listed, true)) ticked_.push_back(&tensor);
  tensor.ticks.push_back(tick);
}

void TensorLives::round_ended() {
  std::erase_if(ticked_, [this](Tensor* tensor) {
    record_ticks(*tensor);
    tensor->is_listed = !tensor->ticks.empty();
    return !tensor->is_listed;
  });
}

void TensorLives::reject(const std::string& name) {
  Tensor& tensor = find(name);
  record_ticks(tensor);
  end_negotiation(tensor);
  for (const auto& [row, moved] : tensor.moved) {
    record_ticks(*row);
    end_negotiation(*row);
  }
}

void TensorLives::begin(const std::string& name, Kind kind) {
  Tensor& tensor = find(name);
  begin(tensor, name, kind);
  for (const auto& [row, moved] : tensor.moved) begin(*row, moved.name, kind);
}

void TensorLives::begin(Tensor& tensor, const std::string& name, Kind kind) {
  record_ticks(tensor);
  end_negotiation(tensor);
  tensor.operation = operation_label(kind);
  record_begin(tensor, name, tensor.operation);
  tensor.state = State::kOperating;
}

void TensorLives::begin_activity(const std::string& name, const char* activity, const char* algorithm) {
  Tensor& tensor = find(name);
  begin_activity(tensor, name, activity, algorithm);
  for (const auto& [row, moved] : tensor.moved) begin_activity(*row, moved.name, activity, algorithm);
}

void TensorLives::begin_activity(Tensor& tensor, const std::string& name, const char* activity, const char* algorithm) {
  if (tensor.state != State::kOperating) return;
  tensor.activity = activity;
  record_begin(tensor, name, activity, algorithm);
  tensor.state = State::kInActivity;
}

void TensorLives::end_activity(const std::string& name) {
  Tensor& tensor = find(name);
  end_activity(tensor);
  for (const auto& [row, moved] : tensor.moved) end_activity(*row);
}

void TensorLives::end(const std::string& name, DType dtype, const Shape& shape) {
  Tensor& tensor = find(name);
  end(tensor, dtype, shape);
  for (const auto& [row, moved] : tensor.moved) end(*row, moved.dtype, moved.shape);
}

void TensorLives::end(Tensor& tensor, DType dtype, const Shape& shape) {
  if (tensor.state != State::kOperating && tensor.state != State::kInActivity) {
    record_ticks(tensor);
    return end_negotiation(tensor);
  }
  end_activity(tensor);
  TraceRecord result{.type = Type::kResult, .pid = tensor.pid, .ns = trace_clock(), .dtype = dtype, .shape = shape};
  if (has_tracks_ && !tensor.is_moved) {
    TraceRecord of_track = result;
    of_track.type = Type::kTrackResult;
    of_track.id = tensor.pid;
    of_track.pid = track();
    of_track.label = tensor.operation;
    record_(std::move(of_track));
  }
  tensor.free_ns = result.ns;
  if (rank_ == 0) record_(std::move(result));
  tensor.state = State::kIdle;
  record_ticks(tensor);
}

TensorLives::Tensor& TensorLives::find(const std::string& name) {
  Tensor& tensor = tensors_[name];
  if (tensor.pid != 0) return tensor;
  tensor.pid = static_cast<int>(tensors_.size());
  tensor.free_ns = start_ns_;
  if (rank_ == 0) record_({.type = Type::kTensor, .pid = tensor.pid, .text = name});
  return tensor;
}

/// Records the ticks, unless they belong to the tensor's next life. A rank that was ahead gave its message before the
/// life could begin.
void TensorLives::record_ticks(Tensor& tensor) {
  if (tensor.ticks.empty() || tensor.state == State::kOperating || tensor.state == State::kInActivity) return;
  std::vector<Tick> ticks = std::exchange(tensor.ticks, {});
  for (Tick& tick : ticks) tick.ns = std::max(tick.ns, tensor.free_ns);
  std::stable_sort(ticks.begin(), ticks.end(), [](const Tick& a, const Tick& b) { return a.ns < b.ns; });
  if (tensor.state == State::kIdle) {
    const Tick& first = ticks.front();
    record_({.type = Type::kBegin, .pid = tensor.pid, .ns = first.ns, .label = negotiation_label(first.kind)});
    tensor.state = State::kNegotiating;
  }
  for (const Tick& tick : ticks) record_({.type = Type::kTick, .pid = tensor.pid, .id = tick.rank, .ns = tick.ns});
}

/// Records an event on the tensor's own track, which only rank 0 writes.
void TensorLives::record_tensor(Type type, const Tensor& tensor, const char* label) {
  if (rank_ == 0) record_({.type = type, .pid = tensor.pid, .ns = trace_clock(), .label = label});
}

/// Records an event on this rank's track, if there is one.
void TensorLives::record_track(Type type, const Tensor& tensor, const char* label, const std::string& name,
                               const char* algorithm) {
  if (!has_tracks_ || tensor.is_moved) return;
  record_({.type = type,
           .pid = track(),
           .id = tensor.pid,
           .ns = trace_clock(),
           .label = label,
           .algorithm = algorithm,
           .text = name});
}

void TensorLives::record_begin(const Tensor& tensor, const std::string& name, const char* label,
                               const char* algorithm) {
  if (rank_ == 0)
    record_({.type = Type::kBegin, .pid = tensor.pid, .ns = trace_clock(), .label = label, .algorithm = algorithm});
  record_track(Type::kTrackBegin, tensor, label, name, algorithm);
}

/// Ends the part of the tensor's life that is open, whichever it is.
void TensorLives::end_negotiation(Tensor& tensor) {
  if (const char* label = std::exchange(tensor.submitted, nullptr)) record_track(Type::kTrackEnd, tensor, label);
  end_activity(tensor);
  if (tensor.state == State::kIdle) return;
  if (tensor.state == State::kOperating) record_track(Type::kTrackEnd, tensor, tensor.operation);
  record_tensor(Type::kEnd, tensor);
  tensor.free_ns = trace_clock();
  tensor.state = State::kIdle;
}

void TensorLives::end_activity(Tensor& tensor) {
  if (tensor.state != State::kInActivity) return;
  record_tensor(Type::kEnd, tensor);
  record_track(Type::kTrackEnd, tensor, tensor.activity);
  tensor.state = State::kOperating;
}

int TensorLives::track() const {
  return kFirstTrack + rank_;
}

}  // namespace runjob::runtime
