#include "runtime/timeline/trace_file.hpp"

#include <cerrno>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files/named_file.hpp"

namespace runjob::runtime {
namespace {

constexpr std::size_t kWriteBytes = 4096;  // one page: see the class comment

}  // namespace

TraceFile::TraceFile(std::string path, std::string_view what)
    : path_(std::move(path)), file_(open_named_file(path_, what)) {
  flush();
}

void TraceFile::append(std::string_view record) {
  pending_ += std::exchange(first_, false) ? "\n" : ",\n";
  pending_ += record;
  if (pending_.size() >= kWriteBytes) flush();
}

void TraceFile::flush() {
  if (pending_.empty()) return;
  const std::size_t bracket = pending_.size() + 1;
  pending_ += "\n]";
  std::size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t count =
        ::pwrite(file_.get(), pending_.data() + done, pending_.size() - done, static_cast<off_t>(offset_ + done));
    if (count < 0 && errno != EINTR) throw system_error(fmt::format("writing '{}'", path_), errno);
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  // The newline stays in the file: it follows the last record and precedes the bracket.
  offset_ += bracket;
  pending_.clear();
}

}  // namespace runjob::runtime
