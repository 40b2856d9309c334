#pragma once

#include <cstdint>
#include <string>

#include "runtime/timeline/trace_file.hpp"
#include "runtime/timeline/trace_writer.hpp"

namespace runjob::runtime {

/// Writes records to a trace's file. A write that fails, and a file that has reached its size limit, end the trace with
/// one warning. In the latter case the trace has a last event that reports it.
class FileSink : public TraceSink {
 public:
  /// `start_ns` is the time of the steady clock that is 0 in the trace.
  /// Units  `most_bytes`: size limit of the file in bytes.
  /// Errors  Error(kUsage) when the file cannot be created. The message names `what`, the variable or option.
  FileSink(std::string path, std::string_view what, std::int64_t start_ns, std::uint64_t most_bytes);
  bool write(const std::vector<TraceRecord>& batch) override;

 private:
  bool end_full();

  const std::string path_;
  TraceFile file_;
  const std::int64_t start_ns_;
  const std::uint64_t most_bytes_;
  std::int64_t last_ns_ = 0;
};

}  // namespace runjob::runtime
