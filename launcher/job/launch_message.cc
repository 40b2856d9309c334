#include "launcher/job/launch_message.hpp"

#include <algorithm>
#include <string>

#include "launcher/binding/gpu_choice.hpp"
#include "launcher/binding/gpu_share.hpp"
#include "launcher/supervision/rank_place.hpp"

namespace runjob {
namespace {

/// A launch message without processes.
Launch message_for(const JobSpec& spec, const Host& host, std::int64_t output_window) {
  Launch message;
  message.command = spec.command;
  message.working_directory = spec.working_directory;
  message.environment = forwarded_environment(spec.environment);
  message.output_window = output_window;
  message.grace_ms = spec.grace_period.count();
  message.bind_to = spec.bind_to;
  message.cores_per_rank = spec.map_by.cores_per_rank;
  message.traceable = spec.stack_traces_on_timeout;
  message.gpus_per_rank = spec.gpus_per_rank;
  message.names_gpus = spec.display_map;
  if (spec.elastic) message.elastic_slots = host.slots;
  return message;
}

/// Adds the process of `placement`. `allocation`: the one of the placement; `process`: its number; `network`: the
/// variables of its host's network.
void add_process(Launch& message, const JobSpec& spec, const Allocation& allocation, const Placement& placement,
                 int process, const JobVariables& job, const Environment& network) {
  const Host& where = allocation.hosts.at(static_cast<std::size_t>(placement.host));
  LaunchProcess& added = message.processes.emplace_back();
  added.number = process;
  added.place = rank_place(allocation, placement, spec.start_timeout);
  added.place.generation = job.generation;
  added.environment = rank_variables(allocation, placement, job);
  added.environment.insert(network.begin(), network.end());
  if (where.gpus) choose_gpus(added.environment, visible_gpus(where, placement, spec.gpus_per_rank));
  for (const auto& [name, value] : spec.runtime_variables) {
    for (const char* prefix : {"RUNJOB_", "HOROVOD_"}) added.environment[prefix + name] = value;
  }
  if (message.cores_per_rank > 0 && !message.environment.contains("OMP_NUM_THREADS"))
    added.environment["OMP_NUM_THREADS"] = std::to_string(message.cores_per_rank);
  added.environment["RUNJOB_FOLD_TRACEBACKS"] = spec.verbose ? "0" : "1";
  if (spec.elastic) {
    added.environment["RUNJOB_ELASTIC"] = added.environment["HOROVOD_ELASTIC"] = "1";
    added.environment["RUNJOB_PROCESS_NUMBER"] = std::to_string(process);
  }
  for (const auto& [name, value] : spec.environment_overrides) added.environment[name] = value;
}

}  // namespace

Launch launch_message(const JobSpec& spec, int host, const JobVariables& job, const HostAddress& address,
                      std::int64_t output_window) {
  const auto& [hosts, placements] = spec.allocation;
  Launch message = message_for(spec, hosts.at(static_cast<std::size_t>(host)), output_window);
  if (spec.forwards_input && host == placements.front().host) message.stdin_process = 0;
  const Environment network = network_variables(address, message.environment);
  for (const Placement& placement : placements) {
    if (placement.host == host) add_process(message, spec, spec.allocation, placement, placement.rank, job, network);
  }
  return message;
}

Launch launch_message(const JobSpec& spec, const Host& host, const Membership::Start& start, const JobVariables& job,
                      const HostAddress& address, std::int64_t output_window) {
  Launch message = message_for(spec, host, output_window);
  const Allocation allocation{std::vector<Host>(static_cast<std::size_t>(start.host_number.hosts), host),
                              {}};  // it counts them
  Placement placement;
  placement.host = start.host_number.number;
  placement.rank = start.rank;
  placement.size = start.size;
  placement.local_rank = start.local_rank;
  placement.local_size = std::max(host.slots, start.local_rank + 1);
  add_process(message, spec, allocation, placement, start.process, job,
              network_variables(address, message.environment));
  message.processes.front().waiting = true;
  rendezvous::Topology topology;
  topology.hosts.assign(static_cast<std::size_t>(start.size), 0);
  topology.hostnames = {host.name};
  message.topology = rendezvous::to_json(topology);
  return message;
}

}  // namespace runjob
