#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_handle.hpp"

namespace runjob::runtime {

/// A Chrome trace: a JSON array of records that is complete after every write, also when the process is killed. Each
/// write is one pwrite() that replaces the closing bracket by more records and a new bracket. Linux copies it page by
/// page and checks for SIGKILL in between. A kill within the few hundred nanoseconds in which a write crosses a page
/// could cut it; writes are therefore short.
/// Threads  one.
/// Errors   Error(kSystem) from append() and flush().
class TraceFile {
 public:
  /// Creates or empties `path` (open_named_file()).
  /// Errors  Error(kUsage) naming `what` (the variable or option) and the path.
  TraceFile(std::string path, std::string_view what);

  /// Adds a record, a JSON object. The next flush() writes it to the file.
  void append(std::string_view record);
  void flush();
  /// The size of the file after the next flush().
  std::uint64_t bytes() const { return offset_ + pending_.size(); }

 private:
  std::string path_;
  UniqueFd file_;
  std::string pending_ = "[";  ///< to be written over the closing bracket
  std::uint64_t offset_ = 0;   ///< position of the closing bracket
  bool first_ = true;
};

}  // namespace runjob::runtime
