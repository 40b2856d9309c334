#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/timeline/timeline.hpp"

namespace runjob::runtime {

/// The timeline as one engine writes to it. The operations of a process set carry its id, because two sets may both
/// have an operation of the same name in flight.
/// Owner    shares the timeline with the other engines of the process.
/// Threads  any.
class EngineTimeline {
 public:
  /// `process_set` is 0 for the whole job.
  EngineTimeline(std::shared_ptr<Timeline> timeline, int process_set)
      : timeline_(std::move(timeline)), suffix_(suffix_of(process_set)) {}

  Timeline& shared() const { return *timeline_; }
  bool is_on() const { return timeline_->is_on(); }
  /// True while rank_ready() is recorded.
  bool records_ranks() const { return timeline_->records_ranks(); }

  void submitted(const std::string& tensor, Kind kind) {
    if (is_on()) timeline_->submitted(row(tensor), kind);
  }
  /// `rank` is the rank in the job.
  void rank_ready(const std::string& tensor, Kind kind, int rank, std::int64_t ns) {
    if (is_on()) timeline_->rank_ready(row(tensor), kind, rank, ns);
  }
  void set_tensors(const std::string& tensor, std::vector<TracedTensor> tensors) {
    if (records_ranks()) timeline_->set_tensors(row(tensor), std::move(tensors), suffix_);
  }
  void round_ended() { timeline_->round_ended(); }
  void reject(const std::string& tensor) {
    if (is_on()) timeline_->reject(row(tensor));
  }
  void begin(const std::string& tensor, Kind kind) {
    if (is_on()) timeline_->begin(row(tensor), kind);
  }
  void begin_activity(const std::string& tensor, const char* activity, const char* algorithm = nullptr) {
    if (is_on()) timeline_->begin_activity(row(tensor), activity, algorithm);
  }
  void end_activity(const std::string& tensor) {
    if (is_on()) timeline_->end_activity(row(tensor));
  }
  void end(const std::string& tensor, DType dtype, const Shape& shape) {
    if (is_on()) timeline_->end(row(tensor), dtype, shape);
  }
  void mark_cycle() { timeline_->mark_cycle(); }

 private:
  static std::string suffix_of(int process_set) { return process_set == 0 ? "" : name_in_set("", process_set); }
  /// The name of the row; of an operation without a name, "number 5".
  std::string row(const std::string& tensor) const {
    return is_unnamed(tensor) ? name_text(tensor) + suffix_of(process_set_of(tensor)) : tensor + suffix_;
  }

  const std::shared_ptr<Timeline> timeline_;
  const std::string suffix_;
};

}  // namespace runjob::runtime
