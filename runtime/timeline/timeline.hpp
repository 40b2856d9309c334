#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/operation.hpp"
#include "runtime/timeline/trace_shipment.hpp"
#include "runtime/timeline/trace_writer.hpp"

namespace runjob::runtime {

/// A trace of the collectives in a file of rank 0's, which loads in Perfetto and chrome://tracing at every moment.
///
/// Tensors   with Horovod's event names and record layout: each tensor is a "process", whose life is NEGOTIATE_<KIND> with a
///           tick per rank, then <KIND> containing activities, as rank 0 sees them. An event that comes while the tensor's
///           last life has not ended (a rank may be ahead) is recorded when it has.
/// Ranks     if wanted, a "process" for each rank as well, with the operations as that rank sees them: the other ranks send their
///           records to rank 0, with times of its clock.
/// Off       until start(), and after stop(); then each call costs a look at a flag.
/// Threads   any.
/// Source    Horovod's docs/timeline.rst for the names; the Trace Event Format for the fields.
class Timeline {
 public:
  static constexpr std::uint64_t kMostBytes = 256u << 20;

  struct Options {
    std::string path;  ///< rank 0's
    std::string what;  ///< how messages name where the path comes from: the variable or function
    bool mark_cycles = false;
    bool all_ranks = false;                 ///< other ranks record only with it
    std::uint64_t most_bytes = kMostBytes;  ///< of the file
  };

  /// `ranks`: how people name them, by rank: "rank 3 on s4".
  Timeline(int rank, std::vector<std::string> ranks);
  ~Timeline();  ///< close()
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Begins a new trace; one that is being written ends.
  /// Errors  Error(kUsage) when the file cannot be created.
  void start(const Options& options);
  /// Writes what is left. Rank 0 with tracks waits for the other ranks' last records, which come when they stop as well, but
  /// for a second at most.
  void stop();
  /// As stop(), but waits for nobody.
  void close();
  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }

  /// This rank has submitted it.
  void submitted(const std::string& tensor, Kind kind);
  void rank_ready(const std::string& tensor, Kind kind, int rank);
  /// The ranks disagree: ends the negotiation.
  void reject(const std::string& tensor);
  /// All are ready: ends the negotiation, begins the operation.
  void begin(const std::string& tensor, Kind kind);
  /// `activity`, `algorithm`: static; the latter may be null.
  void begin_activity(const std::string& tensor, const char* activity, const char* algorithm = nullptr);
  void end_activity(const std::string& tensor);
  /// Ends whatever of `tensor` is open.
  void end(const std::string& tensor, DType dtype, const Shape& shape);
  void mark_cycle();

  // Between the ranks. Whoever carries messages to rank 0 says how it is woken, once, before start().
  void on_messages(std::function<void()> wake) { wake_ = std::move(wake); }
  /// Not rank 0's: what it is to be sent now.
  std::vector<TraceShipment::Message> take_messages();
  /// Everything recorded so far is in the file or in take_messages().
  void drain();
  /// Not rank 0's: see TraceShipment.
  void clock_answered(std::int64_t asked, std::int64_t theirs);
  /// Rank 0's: its time, for an answer; and another rank's records, empty after the last ones.
  std::int64_t clock() const;
  void take_records(std::string records);

 private:
  enum class State { kIdle, kNegotiating, kOperating, kInActivity };
  struct Tick {
    Kind kind;
    int rank;
  };
  struct Tensor {
    int pid = 0;
    State state = State::kIdle;
    std::vector<Tick> early;          ///< of the next life
    const char* submitted = nullptr;  ///< the name of this rank's part of the negotiation, while it lasts
    const char* operation = nullptr;  ///< likewise
    const char* activity = nullptr;
  };
  using Type = TraceRecord::Type;

  Tensor& find(const std::string& name) REQUIRES(mutex_);
  void tick(Tensor& tensor, Tick tick) REQUIRES(mutex_);
  void record(TraceRecord record) REQUIRES(mutex_);
  void record_begin(const Tensor& tensor, const std::string& name, const char* label, const char* algorithm = nullptr)
      REQUIRES(mutex_);
  void record_tensor(Type type, const Tensor& tensor, const char* label = "") REQUIRES(mutex_);
  void record_track(Type type, const Tensor& tensor, const char* label, const std::string& name = {},
                    const char* algorithm = nullptr) REQUIRES(mutex_);
  void end_negotiation(Tensor& tensor) REQUIRES(mutex_);
  void end_activity(Tensor& tensor) REQUIRES(mutex_);
  void end_life(Tensor& tensor) REQUIRES(mutex_);
  void name_ranks() REQUIRES(mutex_);
  void await_ranks() REQUIRES(mutex_);
  int track() const;

  const int rank_;
  const std::vector<std::string> ranks_;
  std::function<void()> wake_;
  std::atomic<bool> is_on_{false};
  std::atomic<std::int64_t> start_ns_{0};

  Mutex mutex_;
  ConditionVariable rank_ended_;
  std::size_t ended_ranks_ GUARDED_BY(mutex_) = 0;  ///< others that record nothing any more
  bool mark_cycles_ GUARDED_BY(mutex_) = false;
  bool has_tracks_ GUARDED_BY(mutex_) = false;
  std::unordered_map<std::string, Tensor> tensors_ GUARDED_BY(mutex_);
  std::shared_ptr<TraceShipment> shipment_ GUARDED_BY(mutex_);  ///< another rank's than 0
  std::shared_ptr<TraceWriter> writer_ GUARDED_BY(mutex_);      ///< while it is on
};

}  // namespace runjob::runtime
