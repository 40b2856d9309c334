#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/operation.hpp"
#include "runtime/timeline/tensor_lives.hpp"
#include "runtime/timeline/trace_shipment.hpp"
#include "runtime/timeline/trace_writer.hpp"

namespace runjob::runtime {

/// A trace of the collectives in a file of rank 0. Perfetto and chrome://tracing can load it at any moment.
///
/// Tensors   with Horovod's event names and record layout. Each tensor is a "process", whose life is NEGOTIATE_<KIND>
///           with a tick per rank, then <KIND> containing activities, as rank 0 sees them. A rank may be ahead: an
///           event of a tensor's next life is recorded when the present life has ended.
/// Ranks     if requested, a "process" for each rank as well, with the operations as that rank sees them. The other
///           ranks send their records to rank 0, with times of its clock.
/// Off       until start(), and after stop(). Each call then costs one check of a flag.
/// Threads   any.
/// Source    Horovod's docs/timeline.rst for the names; the Trace Event Format for the fields.
class Timeline {
 public:
  static constexpr std::uint64_t kMostBytes = 256u << 20;

  struct Options {
    std::string path;  ///< used by rank 0
    std::string what;  ///< the name of the path's source in messages: the variable or function
    bool mark_cycles = false;
    bool all_ranks = false;                 ///< true: the other ranks record too
    std::uint64_t most_bytes = kMostBytes;  ///< size limit of the file
  };

  /// `ranks` has the names of the ranks for people, by rank: "rank 3 on s4".
  Timeline(int rank, std::vector<std::string> ranks);
  ~Timeline();  ///< calls close()
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Starts a new trace. A trace that is being written ends first.
  /// Errors  Error(kUsage) when the file cannot be created.
  void start(const Options& options);
  /// Writes the rest of the trace. Rank 0 with tracks waits at most a second for the other ranks' last records, which
  /// arrive when they stop too.
  void stop();
  /// As stop(), but without waiting for other ranks.
  void close();
  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  /// True while rank_ready() is recorded: on rank 0.
  bool records_ranks() const { return rank_ == 0 && is_on(); }

  /// This rank has submitted the operation.
  void submitted(const std::string& tensor, Kind kind);
  /// A rank was ready at the time `ns` of the steady clock; 0: now. The ticks of one round may come in any order.
  void rank_ready(const std::string& tensor, Kind kind, int rank, std::int64_t ns = 0);
  /// The tensors that the operation `tensor` moves from now on: each has a row with the operation's events, whose name
  /// ends with `suffix`.
  void set_tensors(const std::string& tensor, std::vector<TracedTensor> tensors, const std::string& suffix = "");
  /// The ticks of the next round are not earlier than those before.
  void round_ended();
  /// The ranks disagree: ends the negotiation.
  void reject(const std::string& tensor);
  /// All ranks are ready: ends the negotiation and starts the operation.
  void begin(const std::string& tensor, Kind kind);
  /// `activity` and `algorithm` are static strings; the latter may be null.
  void begin_activity(const std::string& tensor, const char* activity, const char* algorithm = nullptr);
  void end_activity(const std::string& tensor);
  /// Ends everything of `tensor` that is open.
  void end(const std::string& tensor, DType dtype, const Shape& shape);
  void mark_cycle();

  // Messages between the ranks. The carrier of messages to rank 0 registers its wake-up function, once, before start().
  void on_messages(std::function<void()> wake) { wake_ = std::move(wake); }
  /// Called on ranks other than rank 0: the messages that are to be sent to rank 0 now.
  std::vector<TraceShipment::Message> take_messages();
  /// Returns when everything recorded so far is in the file or in take_messages(), except for what a rank has recorded
  /// while it awaits rank 0's clock.
  void drain();
  /// Called on ranks other than rank 0: true when it has begun to record and has no answer of rank 0 yet. Its records
  /// cannot be sent before.
  bool awaits_clock();
  /// Called on ranks other than rank 0: see TraceShipment.
  void clock_answered(std::int64_t asked, std::int64_t theirs);
  /// Called on rank 0: its time, for an answer. take_records() gets the records of the rank `whose`, and an empty text
  /// after the last ones. Text that is no records is left out of the trace, with a warning.
  std::int64_t clock() const;
  void take_records(const std::string& whose, std::string records);

 private:
  void await_ranks() REQUIRES(mutex_);

  const int rank_;
  const std::vector<std::string> ranks_;
  std::function<void()> wake_;
  std::atomic<bool> is_on_{false};
  std::atomic<std::int64_t> start_ns_{0};
  std::atomic<bool> warned_of_text_{false};

  Mutex mutex_;
  ConditionVariable rank_ended_;
  std::size_t ended_ranks_ GUARDED_BY(mutex_) = 0;  ///< number of other ranks that no longer record
  bool mark_cycles_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<TraceShipment> shipment_ GUARDED_BY(mutex_);  ///< set on ranks other than 0
  std::shared_ptr<TraceWriter> writer_ GUARDED_BY(mutex_);      ///< set while the trace is on
  std::optional<TensorLives> lives_ GUARDED_BY(mutex_);         ///< set while the trace is on
};

}  // namespace runjob::runtime
