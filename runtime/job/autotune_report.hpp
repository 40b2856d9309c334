#pragma once

#include <cstdint>
#include <string>

#include "base/mutex.hpp"
#include "base/unique_handle.hpp"
#include "runtime/job/runtime_config.hpp"

namespace runjob::runtime {

/// What rank 0 reports of the search for the size of buckets: the log, with a line for each sample, and one line on
/// standard error when the job ends and the search has not.
/// Owner    the job.
/// Threads  any.
class AutotuneReport {
 public:
  /// `size`: the number of ranks. `has_hosts`: they are on several hosts. `continues`: the log of an earlier generation
  /// of the job is there, and its lines stay.
  /// Errors  Error(kUsage) for a log that cannot be opened, Error(kSystem) for one that cannot be written.
  AutotuneReport(const RuntimeConfig& config, int size, bool has_hosts, bool continues);

  /// Adds a line to the log, if there is one, and writes it at once. `step_bytes`: those of a step's gradients.
  /// Errors  Error(kSystem) when it cannot be written.
  void add_sample(std::uint64_t bucket_bytes, double step_milliseconds, std::uint64_t step_bytes);

  /// The line that end() writes from now on, which says why nothing was tuned, or what is missing; "": none.
  void set_remark(std::string remark);
  void end();

  /// False if there is nothing to search for: the user has set the size, or there is no other rank.
  bool is_needed() const { return is_needed_; }
  const AutotuneSettings& settings() const { return settings_; }
  std::uint64_t most_bucket_bytes() const { return most_bucket_bytes_; }

 private:
  void write(const std::string& line) REQUIRES(mutex_);

  const AutotuneSettings settings_;
  const std::uint64_t most_bucket_bytes_;
  const bool is_needed_;
  std::string values_;  // the columns that are the same in all lines
  Mutex mutex_;
  UniqueFd log_ GUARDED_BY(mutex_);
  std::string remark_ GUARDED_BY(mutex_);
};

}  // namespace runjob::runtime
