#pragma once

#include <cstdint>
#include <string>

#include "runtime/timeline/trace_file.hpp"
#include "runtime/timeline/trace_writer.hpp"

namespace runjob::runtime {

/// Writes records to a trace's file. A write that fails, or a file as long as it may be, ends it with one warning; in the
/// latter case the trace says so as well.
class FileSink : public TraceSink {
 public:
  /// `start_ns`: the steady clock's time that is 0 in the trace.   Units  `most_bytes`: of the file.
  /// Errors  Error(kUsage) when the file cannot be created, naming `what`: the variable or option.
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
