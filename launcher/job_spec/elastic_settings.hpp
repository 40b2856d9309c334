#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "hostfile/allocation.hpp"

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
  int spares = 0;                              ///< more ranks, which wait in slots of their own
  std::vector<Host> more_hosts;                ///< those that have slots, but no rank at first
  std::string discovery_script;                ///< a command line for the shell that lists the hosts; "" = none
  int slots_per_host = 1;                      ///< for hosts of that list without a number
  std::string hostfile;                        ///< an absolute path; edits of this file change the hosts; "" = none
  ::uid_t hostfile_owner = 0;                  ///< when the job was started; nobody else may put another file there
  /// Horovod's rules: no process is started again, its host is excluded at once with all of its ranks, the ranks wait
  /// for newcomers, and generations without a commit do not end the job.
  bool as_horovod = false;

  /// Hosts that the job does not know yet may join it.
  bool may_get_hosts() const { return !discovery_script.empty() || !hostfile.empty() || !more_hosts.empty(); }
};

}  // namespace runjob
