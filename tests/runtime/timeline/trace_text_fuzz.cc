/// Feeds any bytes to what decides whether another rank's records come into rank 0's trace. A text that does must leave
/// the trace a list of objects, with what stands before and after it.
#include <string>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "runtime/timeline/trace_record.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;

void fuzz(std::string_view input) {
  const std::string text(input);
  const std::string inside = runtime::json_escape(text);
  require(try_parse_json("\"" + inside + "\"").is_string());
  require(runtime::is_trace_text("{\"name\": \"" + inside + "\"}"));
  if (!runtime::is_trace_text(text)) return;
  const nlohmann::json trace = try_parse_json("[\n{\"a\": 1},\n" + text + ",\n{\"b\": 2}]");
  require(trace.is_array() && trace.size() >= 3 && trace.front() == nlohmann::json{{"a", 1}} &&
          trace.back() == nlohmann::json{{"b", 2}});
  for (const auto& record : trace) require(record.is_object());
}
