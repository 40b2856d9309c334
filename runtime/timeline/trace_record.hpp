#pragma once

#include <cstdint>
#include <string>

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// What happened and when, cheap to make: it becomes text on the writer's thread.
/// Source  the Trace Event Format for the fields; Horovod's timeline for the records of tensors.
struct TraceRecord {
  enum class Type : std::uint8_t {
    // Horovod's, in which each tensor is a "process".
    kTensor,  ///< the first of a tensor: `text` is its name
    kBegin,
    kEnd,
    kResult,  ///< an end that tells dtype and shape
    kTick,    ///< rank `id` is ready
    kCycle,
    // Of a rank's track: a "process" with the operations as its nested asynchronous events, for several may overlap.
    kRank,  ///< the first of a rank: `text` is its name, `id` the rank
    kTrackBegin,
    kTrackEnd,
    kTrackResult,
    kText  ///< `text` is a record, or more of them with commas in between
  };
  Type type = Type::kText;
  int pid = 0;
  int id = 0;                       ///< of a track's event: which tensor
  std::int64_t ns = 0;              ///< steady clock of the process that made it
  const char* label = "";           ///< the event's name
  const char* algorithm = nullptr;  ///< null: not told
  std::string text = {};            ///< of a track's beginning: the tensor's name
  DType dtype = DType::kUint8;
  Shape shape = {};
};

/// JSON; `offset_ns` is added to the record's time, and gives the time since the trace began.
std::string format(const TraceRecord& record, std::int64_t offset_ns);

/// `text` as the inside of a JSON string. Bytes that are no UTF-8 are replaced.
std::string json_escape(std::string_view text);

// Names of the events of an operation. Static.
const char* operation_label(Kind kind);    ///< "ALLREDUCE"
const char* negotiation_label(Kind kind);  ///< "NEGOTIATE_ALLREDUCE"

}  // namespace runjob::runtime
