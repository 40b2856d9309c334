#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/job_spec/elastic_settings.hpp"

namespace runjob {

/// The time of an exclusion without an end.
inline constexpr const char* kForEver = "for ever";

/// The hosts of an elastic job on which no process is started for now, because they were lost or because too many
/// ranks failed on them in a row. A host is named by its index in the job.
/// Pure     the present time comes with each call.
/// Threads  one.
/// Errors   none.
class Exclusions {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// A member has failed, and the commits that it has lived through are not known yet.
  struct Failure {
    int host = 0;
    std::int64_t member_since = 0;  ///< the newest commit when it became a member
    int first_successor = 0;        ///< processes from this number on are started after the failure
    bool is_decisive = false;       ///< if it counts, the host is excluded
  };

  /// `rank_restarts`: after more failures than this in a row, a host is excluded.
  Exclusions(std::optional<Cooldown> cooldown, int rank_restarts) : cooldown_(cooldown), restarts_(rank_restarts) {}

  /// A process has failed on `host`, and processes from `first_successor` on are started later. Returns true if the
  /// host is excluded for that now.
  bool rank_failed(int host, int first_successor, TimePoint now);
  /// A failure that is counted later, by rank_failed() for each of postponed(). Until then the host takes no process if
  /// the failure is decisive. Returns the failure; nullopt if it would count in any case, because nothing is restarted.
  std::optional<Failure> postpone(Failure failure);
  /// These failures, which are then no longer postponed.
  std::vector<Failure> postponed() { return std::exchange(postponed_, {}); }
  /// Excludes the host for ever, or with a cooldown for its lower limit, which doubles with each exclusion of this host
  /// up to the upper limit.
  void exclude(int host, TimePoint now);
  /// A process on `host` has made progress before it failed: the failures there do not count any more.
  void forgive(int host) { rows_.erase(host); }
  /// The same for a process that goes on, if it was started after the last failure that counted.
  void forgive(int host, int process);
  /// The host may be used at once.
  void readmit(int host) {
    excluded_.erase(host);
    rows_.erase(host);
  }

  bool is_excluded(int host, TimePoint now) const;
  bool is_excluded_for_ever(int host) const;
  /// The time for which the host, which is excluded, still is: kForEver, "for 20 s".
  std::string duration_text(int host, TimePoint now) const;
  /// The time at which the next host comes back; TimePoint::max() for none.
  TimePoint next_return(TimePoint now) const;

 private:
  struct Exclusion {
    TimePoint until{};
    int count = 0;
  };

  struct Row {
    int failures = 0;
    int first_successor = 0;  // of the last one
  };
  bool would_exclude(int host) const;

  const std::optional<Cooldown> cooldown_;
  const int restarts_;
  std::map<int, Row> rows_;  // of failures, by host
  std::vector<Failure> postponed_;
  std::map<int, Exclusion> excluded_;
};

}  // namespace runjob
