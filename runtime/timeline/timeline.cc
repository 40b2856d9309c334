#include "runtime/timeline/timeline.hpp"

#include <algorithm>
#include <pthread.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"

namespace runjob::runtime {
namespace {

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return result;
}

std::int64_t microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

}  // namespace

Timeline::Timeline(std::string path, std::string_view what, bool mark_cycles)
    : start_(std::chrono::steady_clock::now()), mark_cycles_(mark_cycles), file_(std::move(path), what) {
  file_.append(fmt::format(R"({{"name": "process_name", "ph": "M", "pid": 0, )"
                           R"("args": {{"start_time_since_epoch_in_micros": {}}}}})",
                           microseconds(std::chrono::system_clock::now().time_since_epoch())));
  file_.append(R"({"name": "process_sort_index", "ph": "M", "pid": 0, "args": {"sort_index": 0}})");
  file_.flush();
  writer_ = std::thread([this] { write_loop(); });
}

Timeline::~Timeline() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.notify_one();
  }
  writer_.join();
}

void Timeline::rank_ready(const std::string& name, Kind kind, int rank) {
  const MutexLock lock(mutex_);
  Tensor& tensor = find(name);
  if (tensor.state == State::kOperating || tensor.state == State::kInActivity) {
    tensor.early.push_back({kind, rank});
  } else {
    tick(tensor, {kind, rank});
  }
}

void Timeline::reject(const std::string& name) {
  const MutexLock lock(mutex_);
  end_life(find(name), "");
}

void Timeline::begin(const std::string& name, Kind kind) {
  const MutexLock lock(mutex_);
  Tensor& tensor = find(name);
  while (tensor.state != State::kIdle)
    record_end(tensor, tensor.state == State::kInActivity ? State::kOperating : State::kIdle);
  record_begin(tensor, upper(to_string(kind)));
  tensor.state = State::kOperating;
}

void Timeline::begin_activity(const std::string& name, const char* activity) {
  const MutexLock lock(mutex_);
  Tensor& tensor = find(name);
  if (tensor.state != State::kOperating) return;
  record_begin(tensor, activity);
  tensor.state = State::kInActivity;
}

void Timeline::end_activity(const std::string& name) {
  const MutexLock lock(mutex_);
  Tensor& tensor = find(name);
  if (tensor.state == State::kInActivity) record_end(tensor, State::kOperating);
}

void Timeline::end(const std::string& name, DType dtype, const Shape& shape) {
  const MutexLock lock(mutex_);
  Tensor& tensor = find(name);
  if (tensor.state == State::kIdle) return;
  if (tensor.state == State::kInActivity) record_end(tensor, State::kOperating);
  end_life(tensor, fmt::format(R"(, "args": {{"dtype": "{}", "shape": "{}"}})", to_string(dtype), to_string(shape)));
}

void Timeline::mark_cycle() {
  if (!mark_cycles_) return;
  const MutexLock lock(mutex_);
  record(fmt::format(R"({{"name": "CYCLE_START", "ph": "i", "ts": {}, "s": "g"}})", now()));
}

Timeline::Tensor& Timeline::find(const std::string& name) {
  Tensor& tensor = tensors_[name];
  if (tensor.pid != 0) return tensor;
  tensor.pid = static_cast<int>(tensors_.size());
  record(fmt::format(R"({{"name": "process_name", "ph": "M", "pid": {}, "args": {{"name": "{}"}}}})", tensor.pid,
                     json_escape(name)));
  record(fmt::format(R"({{"name": "process_sort_index", "ph": "M", "pid": {0}, "args": {{"sort_index": {0}}}}})",
                     tensor.pid));
  return tensor;
}

void Timeline::tick(Tensor& tensor, Tick tick) {
  if (tensor.state == State::kIdle) {
    record_begin(tensor, "NEGOTIATE_" + upper(to_string(tick.kind)));
    tensor.state = State::kNegotiating;
  }
  record(fmt::format(R"({{"name": "{}", "ph": "X", "ts": {}, "pid": {}, "dur": 0}})", tick.rank, now(), tensor.pid));
}

void Timeline::record_begin(const Tensor& tensor, std::string_view name) {
  record(fmt::format(R"({{"name": "{}", "ph": "B", "ts": {}, "pid": {}}})", name, now(), tensor.pid));
}

void Timeline::record_end(Tensor& tensor, State next, std::string_view arguments) {
  record(fmt::format(R"({{"ph": "E", "ts": {}, "pid": {}{}}})", now(), tensor.pid, arguments));
  tensor.state = next;
}

void Timeline::record(std::string text) {
  if (failed_) return;
  records_.push_back(std::move(text));
  if (records_.size() == 1) changed_.notify_one();
}

void Timeline::end_life(Tensor& tensor, std::string_view arguments) {
  if (tensor.state != State::kIdle) record_end(tensor, State::kIdle, arguments);
  for (const Tick& early : std::exchange(tensor.early, {})) tick(tensor, early);
}

std::int64_t Timeline::now() const {
  return microseconds(std::chrono::steady_clock::now() - start_);
}

void Timeline::write_loop() {
  ::pthread_setname_np(::pthread_self(), "runjob-timeline");
  for (bool stop = false; !stop;) {
    std::vector<std::string> batch;
    {
      const MutexLock lock(mutex_);
      while (records_.empty() && !stop_) changed_.wait(mutex_);
      batch = std::exchange(records_, {});
      stop = stop_;
    }
    try {
      for (const std::string& text : batch) file_.append(text);
      file_.flush();
    } catch (const Error& error) {
      log::warn("the timeline ends here: {}", error.what());
      const MutexLock lock(mutex_);
      failed_ = true;
    }
  }
}

}  // namespace runjob::runtime
