#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace runjob {

/// The time for which a failed host is excluded: at first `lower`, doubled each time, at most `upper`.
struct Cooldown {
  std::chrono::seconds lower{0};
  std::chrono::seconds upper{0};
};

/// How an elastic job may change its size. The first generation has the ranks of JobSpec::allocation.
struct ElasticSettings {
  int min_ranks = 1;  ///< with fewer the ranks wait
  int max_ranks = 1;
  std::chrono::milliseconds timeout{600'000};  ///< how long they wait for enough ranks
  std::optional<int> reset_limit;              ///< the job ends after this many new generations
  int rank_restarts = 3;                       ///< in a row on one host, before the host is excluded
  std::optional<Cooldown> cooldown;            ///< without one a host is excluded for ever
  std::string discovery_script;                ///< a command line for the shell that lists the hosts; "" = none
  int slots_per_host = 1;                      ///< for hosts of that list without a number
};

}  // namespace runjob
