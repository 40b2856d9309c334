#include "runtime/timeline/trace_record.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace runjob::runtime {
namespace {

using Type = TraceRecord::Type;

std::string arguments_of_result(const TraceRecord& record) {
  return fmt::format(R"("args": {{"dtype": "{}", "shape": "{}", "bytes": {}}})", to_string(record.dtype),
                     to_string(record.shape),
                     static_cast<std::size_t>(element_count(record.shape)) * size_of(record.dtype));
}

std::string format_tensor(const TraceRecord& record) {
  return fmt::format(R"({{"name": "process_name", "ph": "M", "pid": {0}, "args": {{"name": "{1}"}}}},)"
                     "\n"
                     R"({{"name": "process_sort_index", "ph": "M", "pid": {0}, "args": {{"sort_index": {2}}}}})",
                     record.pid, json_escape(record.text), record.type == Type::kRank ? record.id : record.pid);
}

/// Formats an event as Horovod does, with whole microseconds.
std::string format_tensor_event(const TraceRecord& record, std::int64_t us) {
  switch (record.type) {
    case Type::kBegin: {
      const std::string more =
          record.algorithm == nullptr ? "" : fmt::format(R"(, "args": {{"algorithm": "{}"}})", record.algorithm);
      return fmt::format(R"({{"name": "{}", "ph": "B", "ts": {}, "pid": {}{}}})", record.label, us, record.pid, more);
    }
    case Type::kEnd:
      return fmt::format(R"({{"ph": "E", "ts": {}, "pid": {}}})", us, record.pid);
    case Type::kResult:
      return fmt::format(R"({{"ph": "E", "ts": {}, "pid": {}, {}}})", us, record.pid, arguments_of_result(record));
    case Type::kTick:
      return fmt::format(R"({{"name": "{}", "ph": "X", "ts": {}, "pid": {}, "dur": 0}})", record.id, us, record.pid);
    default:
      return fmt::format(R"({{"name": "CYCLE_START", "ph": "i", "ts": {}, "s": "g"}})", us);
  }
}

std::string arguments_of_begin(const TraceRecord& record) {
  std::string arguments = fmt::format(R"("args": {{"tensor": "{}")", json_escape(record.text));
  if (record.algorithm != nullptr) arguments += fmt::format(R"(, "algorithm": "{}")", record.algorithm);
  return arguments + "}";
}

std::string format_track_event(const TraceRecord& record, std::int64_t ns) {
  const bool begins = record.type == Type::kTrackBegin;
  std::string arguments;
  if (begins) arguments = ", " + arguments_of_begin(record);
  if (record.type == Type::kTrackResult) arguments = ", " + arguments_of_result(record);
  return fmt::format(R"({{"name": "{}", "cat": "collective", "ph": "{}", "id2": {{"local": "{:#x}"}}, "pid": {}, )"
                     R"("tid": 0, "ts": {:.3f}{}}})",
                     record.label, begins ? "b" : "e", record.id, record.pid, static_cast<double>(ns) / 1e3, arguments);
}

struct Labels {
  const char* operation;
  const char* negotiation;
};

Labels labels(Kind kind) {
  switch (kind) {
    case Kind::kAllreduce:
      return {"ALLREDUCE", "NEGOTIATE_ALLREDUCE"};
    case Kind::kAllgather:
      return {"ALLGATHER", "NEGOTIATE_ALLGATHER"};
    case Kind::kBroadcast:
      return {"BROADCAST", "NEGOTIATE_BROADCAST"};
    case Kind::kJoin:
      return {"JOIN", "NEGOTIATE_JOIN"};
    case Kind::kAlltoall:
      return {"ALLTOALL", "NEGOTIATE_ALLTOALL"};
    case Kind::kBarrier:
      return {"BARRIER", "NEGOTIATE_BARRIER"};
    case Kind::kReducescatter:
      return {"REDUCESCATTER", "NEGOTIATE_REDUCESCATTER"};
  }
  return {"UNKNOWN", "NEGOTIATE_UNKNOWN"};
}

}  // namespace

std::string format(const TraceRecord& record, std::int64_t offset_ns) {
  const std::int64_t ns = record.ns + offset_ns;
  switch (record.type) {
    case Type::kText:
      return record.text;
    case Type::kTensor:
    case Type::kRank:
      return format_tensor(record);
    case Type::kTrackBegin:
    case Type::kTrackEnd:
    case Type::kTrackResult:
      return format_track_event(record, ns);
    default:
      return format_tensor_event(record, ns / 1000);
  }
}

bool is_trace_text(std::string_view text) {
  const nlohmann::json records = try_parse_json(fmt::format("[{}]", text));
  return records.is_array() && !records.empty() &&
         std::all_of(records.begin(), records.end(), [](const auto& record) { return record.is_object(); });
}

std::string json_escape(std::string_view text) {
  const std::string quoted = json_text(nlohmann::json(std::string(text)));
  return quoted.substr(1, quoted.size() - 2);
}

const char* operation_label(Kind kind) {
  return labels(kind).operation;
}

const char* negotiation_label(Kind kind) {
  return labels(kind).negotiation;
}

}  // namespace runjob::runtime
