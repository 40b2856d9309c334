#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "hostfile/allocation.hpp"
#include "hostfile/slurm_task.hpp"
#include "launcher/binding/bind_to.hpp"
#include "launcher/job_spec/elastic_settings.hpp"
#include "launcher/job_spec/slurm_job.hpp"
#include "launcher/job_spec/ssh_options.hpp"
#include "launcher/network/interface_filter.hpp"
#include "launcher/output/output_tag.hpp"

namespace runjob {

/// The descriptors that runjob.run() leaves open for the launcher, see call_relay.hpp.
struct CallDescriptors {
  int function = -1;  ///< a file
  int caller = -1;    ///< a stream socket
};

/// Everything that defines a job. cli/ builds it once and checks it as a whole; after that it is only read.
struct JobSpec {
  Allocation allocation;
  MapBy map_by;  ///< how the ranks of `allocation` were placed
  BindTo bind_to = BindTo::kNone;
  int gpus_per_rank = 0;  ///< 0 = each rank sees all GPUs that its host lets it see
  bool display_map = false;
  std::vector<int> local_hosts;       ///< indices of the names of this host; the other hosts are reached by SSH
  std::vector<std::string> command;   ///< program and arguments, at least one word
  Environment environment;            ///< the launcher's own, from which that of the ranks is made
  Environment environment_overrides;  ///< -x NAME=VALUE: set last, for every rank
  std::string working_directory;      ///< absolute; the ranks start in it
  bool forwards_input = true;         ///< rank 0 reads the launcher's standard input; without it no rank has one
  std::optional<std::string> output_directory;  ///< --output-filename: DIR/rank.N/{stdout,stderr}
  bool prefix_output_with_timestamp = false;
  TagStyle tags;                                        ///< the tag before each line of output
  std::optional<std::vector<int>> output_ranks;         ///< the ranks whose output is shown; all if not given
  std::chrono::milliseconds start_timeout{30'000};      ///< from the first rank's init() to the last one's
  std::chrono::milliseconds grace_period{10'000};       ///< between SIGTERM and SIGKILL; 0 = SIGKILL at once
  std::optional<std::chrono::milliseconds> time_limit;  ///< --timeout: of the whole job
  bool stack_traces_on_timeout = false;                 ///< report the stacks of the ranks when time is up
  bool continue_on_failure = false;                     ///< the other ranks continue when one fails
  std::optional<ElasticSettings> elastic;               ///< the job's size may change
  /// Variables for the runtime of the ranks, by name without a prefix; each rank gets them with RUNJOB_ and with
  /// HOROVOD_.
  std::map<std::string, std::string> runtime_variables;
  /// The options among those variables' sources, as messages name them: they act only in ranks that call init().
  std::vector<std::string> runtime_options;
  std::optional<std::string> status_file;  ///< the verdict as JSON
  std::optional<CallDescriptors>
      call;                  ///< a Python process has called runjob.run() and reports the outcome to the user itself
  std::string failure_lead;  ///< stands before the message about a failed rank
  std::optional<SlurmJob> slurm;  ///< the hosts that are not local are reached by srun and not by SSH
  std::optional<SlurmTask>
      slurm_task;  ///< SLURM has started this process as one rank, which is the whole allocation then
  SshOptions ssh;
  InterfaceFilter network_interfaces;  ///< --network-interface: for the ranks' own connections
  bool verbose = false;
};

}  // namespace runjob
