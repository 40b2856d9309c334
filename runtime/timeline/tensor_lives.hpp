#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/collectives/operation.hpp"
#include "runtime/timeline/trace_record.hpp"

namespace runjob::runtime {

/// One of the tensors that an operation moves together.
struct TracedTensor {
  std::string name;
  DType dtype = DType::kUint8;
  Shape shape = {};
  std::int64_t since_ns = 0;  ///< since when it waits for the others, by trace_clock(); 0: it does not
};

/// The life of each tensor in one trace: a negotiation, then an operation that contains activities. Turns the engine's
/// events into the records of that life, and leaves out events that do not fit the tensor's state.
///
/// Early     an event of a tensor's next life, from a rank that is ahead, is kept until the present life has ended.
/// Ticks     the ticks of a round are recorded together, the earliest first, when the round or the negotiation ends.
/// Rows      an operation has a row, and so has each tensor that it moves, if it is told which they are.
/// Tracks    with `has_tracks`, each record that concerns this rank is made a second time for the rank's own track.
/// Owner     one Timeline, for the time between its start() and close().
/// Threads   one at a time: the Timeline's mutex guards it.
class TensorLives {
 public:
  using Record = std::function<void(TraceRecord)>;

  /// `rank` 0 records the tensors' own tracks; the other ranks record only their rank's track.
  TensorLives(int rank, bool has_tracks, Record record);

  bool has_tracks() const { return has_tracks_; }
  /// Gives the track of each rank its name. Rank 0 calls it once, before any other function.
  void name_ranks(const std::vector<std::string>& ranks);

  // The events of Timeline, which documents them.
  void submitted(const std::string& name, Kind kind);
  void rank_ready(const std::string& name, Kind kind, int rank, std::int64_t ns);
  void round_ended();
  void set_tensors(const std::string& name, std::vector<TracedTensor> tensors);
  void reject(const std::string& name);
  void begin(const std::string& name, Kind kind);
  void begin_activity(const std::string& name, const char* activity, const char* algorithm);
  void end_activity(const std::string& name);
  void end(const std::string& name, DType dtype, const Shape& shape);

 private:
  enum class State { kIdle, kNegotiating, kOperating, kInActivity };
  struct Tick {
    Kind kind;
    int rank;
    std::int64_t ns;
  };
  struct Tensor {
    int pid = 0;
    State state = State::kIdle;
    std::vector<Tick> ticks;  ///< not recorded yet
    bool is_listed = false;   ///< in `ticked_`
    /// The rows of the tensors that it moves; the values are for the end of the operation.
    std::vector<std::pair<Tensor*, TracedTensor>> moved;
    bool is_moved = false;            ///< a row of such a tensor, which no rank's track has
    std::int64_t free_ns = 0;         ///< since when the present life may have begun
    const char* submitted = nullptr;  ///< the label of this rank's part of the negotiation, while it lasts
    const char* operation = nullptr;  ///< the label of the operation, while it lasts
    const char* activity = nullptr;   ///< the label of the activity, while it lasts
  };
  using Type = TraceRecord::Type;

  Tensor& find(const std::string& name);
  void add_tick(Tensor& tensor, Tick tick);
  void record_ticks(Tensor& tensor);
  void begin(Tensor& tensor, const std::string& name, Kind kind);
  void begin_activity(Tensor& tensor, const std::string& name, const char* activity, const char* algorithm);
  void end(Tensor& tensor, DType dtype, const Shape& shape);
  void record_begin(const Tensor& tensor, const std::string& name, const char* label, const char* algorithm = nullptr);
  void record_tensor(Type type, const Tensor& tensor, const char* label = "");
  void record_track(Type type, const Tensor& tensor, const char* label, const std::string& name = {},
                    const char* algorithm = nullptr);
  void end_negotiation(Tensor& tensor);
  void end_activity(Tensor& tensor);
  int track() const;

  const int rank_;
  const bool has_tracks_;
  const Record record_;
  const std::int64_t start_ns_;
  std::vector<Tensor*> ticked_;  ///< tensors that may have ticks that are not recorded yet
  std::unordered_map<std::string, Tensor> tensors_;
};

}  // namespace runjob::runtime
