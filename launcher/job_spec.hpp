#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "hostfile/allocation.hpp"
#include "hostfile/slurm_task.hpp"
#include "launcher/bind_to.hpp"
#include "launcher/network/interface_filter.hpp"
#include "launcher/output_tag.hpp"
#include "launcher/slurm/slurm_job.hpp"
#include "launcher/ssh/ssh_options.hpp"

namespace runjob {

/// What runjob.run() has left open for us, see call_relay.hpp.
struct CallDescriptors {
  int function = -1;  ///< a file
  int caller = -1;    ///< a stream socket
};

/// Everything that defines a job. Built once by cli/, checked as a whole, then only read.
struct JobSpec {
  Allocation allocation;
  MapBy map_by;  ///< how the ranks of `allocation` were placed
  BindTo bind_to = BindTo::kNone;
  int gpus_per_rank = 0;  ///< 0 = each rank sees all that its host lets it
  bool display_map = false;
  std::vector<int> local_hosts;       ///< indices of the hosts that are this one; the others are reached by SSH
  std::vector<std::string> command;   ///< program and arguments, at least one word
  Environment environment;            ///< the launcher's own, from which the ranks' is made
  Environment environment_overrides;  ///< -x NAME=VALUE: set last, for every rank
  std::string working_directory;      ///< absolute; the ranks start in it
  std::optional<std::string> output_directory;  ///< --output-filename: DIR/rank.N/{stdout,stderr}
  bool prefix_output_with_timestamp = false;
  TagStyle tags;                                        ///< what stands before each line of output
  std::optional<std::vector<int>> output_ranks;         ///< those whose output is shown; all when not given
  std::chrono::milliseconds start_timeout{30'000};      ///< from the first rank's init() to the last one's
  std::chrono::milliseconds grace_period{10'000};       ///< between SIGTERM and SIGKILL; 0 = SIGKILL at once
  std::optional<std::chrono::milliseconds> time_limit;  ///< --timeout: of the whole job
  bool stack_traces_on_timeout = false;                 ///< say where the ranks are when time is up
  bool continue_on_failure = false;                     ///< the other ranks go on when one fails
  /// For the ranks' runtime: values of variables, by name without the prefix RUNJOB_ or HOROVOD_; they get both.
  std::map<std::string, std::string> runtime_variables;
  std::optional<std::string> status_file;  ///< the verdict as JSON
  std::optional<CallDescriptors>
      call;                         ///< a Python process wants a function called, and tells the user what came of it
  bool says_as_horovodrun = false;  ///< a failed rank is told with horovodrun's words in front, which scripts look for
  std::optional<SlurmJob> slurm;    ///< the hosts that are not local are reached by srun and not by SSH
  std::optional<SlurmTask> slurm_task;  ///< SLURM has started us as one rank; then the allocation is of this one alone
  SshOptions ssh;
  InterfaceFilter network_interfaces;  ///< --network-interface: for the ranks' own connections
  bool verbose = false;
};

}  // namespace runjob
