#include "launcher/job/launch_message.hpp"

#include <string>

#include "launcher/binding/gpu_share.hpp"
#include "launcher/supervision/rank_place.hpp"

namespace runjob {

Launch launch_message(const JobSpec& spec, int host, const JobVariables& job, const HostAddress& address,
                      std::int64_t output_window) {
  const auto& [hosts, placements] = spec.allocation;
  const Host& where = hosts.at(static_cast<std::size_t>(host));
  Launch message;
  message.command = spec.command;
  message.working_directory = spec.working_directory;
  message.environment = forwarded_environment(spec.environment);
  message.output_window = output_window;
  message.grace_ms = spec.grace_period.count();
  message.bind_to = spec.bind_to;
  message.cores_per_rank = spec.map_by.cores_per_rank;
  message.traceable = spec.stack_traces_on_timeout;
  if (!where.gpus) message.gpus_per_rank = spec.gpus_per_rank;
  if (host == placements.front().host) message.stdin_rank = 0;
  const Environment network = network_variables(address, message.environment);
  for (const Placement& placement : placements) {
    if (placement.host != host) continue;
    LaunchRank& rank = message.ranks.emplace_back();
    rank.rank = placement.rank;
    rank.place = rank_place(spec.allocation, placement, spec.start_timeout);
    rank.environment = rank_variables(spec.allocation, placement, job);
    rank.environment.insert(network.begin(), network.end());
    if (where.gpus) rank.environment["CUDA_VISIBLE_DEVICES"] = visible_gpus(where, placement, spec.gpus_per_rank);
    for (const auto& [name, value] : spec.runtime_variables) {
      for (const char* prefix : {"RUNJOB_", "HOROVOD_"}) rank.environment[prefix + name] = value;
    }
    if (message.cores_per_rank > 0 && !message.environment.contains("OMP_NUM_THREADS"))
      rank.environment["OMP_NUM_THREADS"] = std::to_string(message.cores_per_rank);
    rank.environment["RUNJOB_FOLD_TRACEBACKS"] = spec.verbose ? "0" : "1";
    for (const auto& [name, value] : spec.environment_overrides) rank.environment[name] = value;
  }
  return message;
}

}  // namespace runjob
