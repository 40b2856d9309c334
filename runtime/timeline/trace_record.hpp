#pragma once

#include <cstdint>
#include <string>

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// An event and its time. It is cheap to make; the writer's thread turns it into text.
/// Source  the Trace Event Format for the fields; Horovod's timeline for the records of tensors.
struct TraceRecord {
  enum class Type : std::uint8_t {
    // Horovod's records, in which each tensor is a "process".
    kTensor,  ///< the first record of a tensor: `text` is its name
    kBegin,
    kEnd,
    kResult,  ///< an end with dtype and shape
    kTick,    ///< rank `id` is ready
    kCycle,
    // Records of a rank's track: a "process" whose operations are nested asynchronous events, because several may
    // overlap.
    kRank,  ///< the first record of a rank: `text` is its name, `id` the rank
    kTrackBegin,
    kTrackEnd,
    kTrackResult,
    kText  ///< `text` is one record, or several separated by commas
  };
  Type type = Type::kText;
  int pid = 0;
  int id = 0;                       ///< id of the tensor, in an event of a track
  std::int64_t ns = 0;              ///< steady clock of the process that recorded it
  const char* label = "";           ///< the event's name
  const char* algorithm = nullptr;  ///< null for none
  std::string text = {};            ///< the tensor's name, in the first event of a track
  DType dtype = DType::kUint8;
  Shape shape = {};
};

/// The record as JSON. `offset_ns` plus the record's time is the time since the start of the trace.
std::string format(const TraceRecord& record, std::int64_t offset_ns);

/// True if `text`, which another rank has sent, can be the text of a kText: records, and nothing that would change the
/// meaning of what stands before or after them in the file.
bool is_trace_text(std::string_view text);

/// `text` as the inside of a JSON string. Bytes that are not UTF-8 are replaced.
std::string json_escape(std::string_view text);

// Names of the events of an operation, as static strings.
const char* operation_label(Kind kind);    ///< "ALLREDUCE"
const char* negotiation_label(Kind kind);  ///< "NEGOTIATE_ALLREDUCE"

}  // namespace runjob::runtime
