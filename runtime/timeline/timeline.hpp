#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/operation.hpp"
#include "runtime/timeline/trace_file.hpp"

namespace runjob::runtime {

/// Rank 0's trace with Horovod's event names and record layout: each tensor is a "process", whose life is
/// NEGOTIATE_<KIND> with a tick per rank, then <KIND> containing activities. Loads in Perfetto and
/// chrome://tracing. An event that comes while the tensor's last life has not ended (a rank may be ahead) is
/// recorded when it has. Threads  any; the file is written by a thread of its own, "runjob-timeline". A write
/// that fails ends the recording
///          with one warning.
/// Source   Horovod's docs/timeline.rst for the names; the Trace Event Format for the fields.
class Timeline {
 public:
  /// Errors  Error(kUsage) when the file cannot be created, naming `what` (the variable or option).
  Timeline(std::string path, std::string_view what, bool mark_cycles);
  /// Writes what is left.
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void rank_ready(const std::string& tensor, Kind kind, int rank);
  /// The ranks disagree: ends the negotiation.
  void reject(const std::string& tensor);
  /// All are ready: ends the negotiation, begins the operation.
  void begin(const std::string& tensor, Kind kind);
  void begin_activity(const std::string& tensor, const char* activity);
  void end_activity(const std::string& tensor);
  /// Ends whatever of `tensor` is open.
  void end(const std::string& tensor, DType dtype, const Shape& shape);
  void mark_cycle();

 private:
  enum class State { kIdle, kNegotiating, kOperating, kInActivity };
  struct Tick {
    Kind kind;
    int rank;
  };
  struct Tensor {
    int pid = 0;
    State state = State::kIdle;
    std::vector<Tick> early;  ///< of the next life
  };

  Tensor& find(const std::string& name) REQUIRES(mutex_);
  void tick(Tensor& tensor, Tick tick) REQUIRES(mutex_);
  void record_begin(const Tensor& tensor, std::string_view name) REQUIRES(mutex_);
  void record_end(Tensor& tensor, State next, std::string_view arguments = "") REQUIRES(mutex_);
  void record(std::string text) REQUIRES(mutex_);
  void end_life(Tensor& tensor, std::string_view arguments) REQUIRES(mutex_);
  std::int64_t now() const;
  void write_loop();

  const std::chrono::steady_clock::time_point start_;
  const bool mark_cycles_;
  TraceFile file_;  ///< the writer's, once it runs

  Mutex mutex_;
  ConditionVariable changed_;
  std::unordered_map<std::string, Tensor> tensors_ GUARDED_BY(mutex_);
  std::vector<std::string> records_ GUARDED_BY(mutex_);
  bool stop_ GUARDED_BY(mutex_) = false;
  bool failed_ GUARDED_BY(mutex_) = false;
  std::thread writer_;
};

}  // namespace runjob::runtime
