#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job_spec/elastic_settings.hpp"

namespace runjob {

/// The hosts of an elastic job on which no process is started for now, because they were lost or because too many
/// ranks failed on them in a row. A host is named by its index in the job.
/// Pure     the present time comes with each call.
/// Threads  one.
/// Errors   none.
class Exclusions {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `rank_restarts`: after more failures than this in a row, a host is excluded.
  Exclusions(std::optional<Cooldown> cooldown, int rank_restarts) : cooldown_(cooldown), restarts_(rank_restarts) {}

  /// A rank has failed on `host`. Returns true if the host is excluded for that now.
  bool rank_failed(int host, TimePoint now);
  /// A rank has failed on `host`, and the ranks there may have made progress before: a failure that would exclude the
  /// host is counted later, by rank_failed() for each of postponed(). Until then the host takes no process. Returns
  /// false if there is no such doubt.
  bool postpone(int host);
  /// The hosts of these failures, which are then no longer postponed.
  std::vector<int> postponed() { return std::exchange(postponed_, {}); }
  /// Excludes the host for ever, or with a cooldown for its lower limit, which doubles with each exclusion of this host
  /// up to the upper limit.
  void exclude(int host, TimePoint now);
  /// The ranks on `host` have made progress: its failures do not count any more.
  void forgive(int host) { failures_.erase(host); }
  /// The host may be used at once.
  void readmit(int host) {
    excluded_.erase(host);
    failures_.erase(host);
  }

  bool is_excluded(int host, TimePoint now) const;
  /// The time for which the host, which is excluded, still is: "for ever", "for 20 s".
  std::string duration_text(int host, TimePoint now) const;
  /// The time at which the next host comes back; TimePoint::max() for none.
  TimePoint next_return(TimePoint now) const;

 private:
  struct Exclusion {
    TimePoint until{};
    int count = 0;
  };

  const std::optional<Cooldown> cooldown_;
  const int restarts_;
  std::map<int, int> failures_;  // in a row, by host
  std::vector<int> postponed_;
  std::map<int, Exclusion> excluded_;
};

}  // namespace runjob
