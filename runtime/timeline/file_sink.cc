#include "runtime/timeline/file_sink.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"

namespace runjob::runtime {

FileSink::FileSink(std::string path, std::string_view what, std::int64_t start_ns, std::uint64_t most_bytes)
    : path_(path), file_(std::move(path), what), start_ns_(start_ns), most_bytes_(most_bytes) {
  const auto since_epoch =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
  file_.append(fmt::format(R"({{"name": "process_name", "ph": "M", "pid": 0, )"
                           R"("args": {{"start_time_since_epoch_in_micros": {}}}}})",
                           since_epoch.count()));
  file_.append(R"({"name": "process_sort_index", "ph": "M", "pid": 0, "args": {"sort_index": 0}})");
  file_.flush();
}

bool FileSink::write(const std::vector<TraceRecord>& batch) {
  try {
    for (const TraceRecord& record : batch) {
      if (file_.bytes() >= most_bytes_) return end_full();
      if (record.type != TraceRecord::Type::kText) last_ns_ = record.ns;
      file_.append(format(record, -start_ns_));
    }
    file_.flush();
    return true;
  } catch (const Error& error) {
    log::warn("the timeline ends here: {}", error.what());
    return false;
  }
}

bool FileSink::end_full() {
  constexpr double kMiB = 1 << 20;
  const std::string why =
      fmt::format("'{}' has {:.3g} MiB, as much as it may have", path_, static_cast<double>(most_bytes_) / kMiB);
  log::warn("the timeline ends here: {}; --timeline-max-mb allows more", why);
  file_.append(fmt::format(R"({{"name": "TIMELINE_FULL", "ph": "i", "ts": {}, "s": "g", "args": {{"why": "{}"}}}})",
                           (last_ns_ - start_ns_) / 1000, json_escape(why)));
  file_.flush();
  return false;
}

}  // namespace runjob::runtime
