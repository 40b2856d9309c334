#include "cli/settings/build_job_spec.hpp"

#include <algorithm>
#include <optional>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/ignored_variables.hpp"
#include "base/parse.hpp"
#include "base/screen_text.hpp"
#include "cli/options/check_paths.hpp"
#include "cli/options/horovodrun_options.hpp"
#include "cli/settings/env_file.hpp"
#include "cli/settings/export_variables.hpp"
#include "cli/settings/rank_variables.hpp"
#include "cli/settings/read_elastic_settings.hpp"
#include "cli/settings/runtime_variables.hpp"
#include "cli/settings/setting_reader.hpp"
#include "hostfile/batch_job.hpp"
#include "hostfile/local_host.hpp"
#include "hostfile/parse_hosts.hpp"
#include "hostfile/rank_list.hpp"
#include "hostfile/read_hostfile.hpp"
#include "hostfile/slurm_allocation.hpp"
#include "hostfile/slurm_task.hpp"

namespace runjob {

using namespace std::chrono_literals;

namespace {

/// The hosts of a job. Those of a SLURM job are reached by SLURM, and a hostfile has an owner.
struct Hosts {
  std::vector<Host> hosts;
  std::optional<SlurmJob> slurm;
  ::uid_t hostfile_owner = 0;
};

Host host_of_one(const std::string& name) {
  Host host;
  host.name = name;
  return host;
}

/// SLURM gives the nodes of a heterogeneous job by component, and those of the first one as the job's.
void warn_of_other_components(const Environment& environment, Warnings& warnings) {
  const auto components = environment.find("SLURM_HET_SIZE");
  if (components == environment.end() || components->second.empty() || components->second == "1") return;
  warnings.push_back(fmt::format(
      "only the nodes of component 0 get ranks, since this SLURM job is heterogeneous and has {} components; "
      "name the hosts of all with -H",
      components->second));
}

Hosts hosts_of_file(const SettingValue& file, const std::string& path, Warnings& warnings) {
  Hostfile hostfile = read_hostfile(path, file.text);
  if (hostfile.owner != 0 && hostfile.owner != ::getuid())
    warnings.push_back(fmt::format("{}: {} belongs to user {}, who chooses the hosts of this job", file.place,
                                   file.text, hostfile.owner));
  return {std::move(hostfile.hosts), {}, hostfile.owner};
}

std::optional<int> read_gpus_per_rank(const SettingReader& reader) {
  constexpr int kMostGpus = 1024;
  const auto gpus = reader.find("gpus-per-rank");
  if (!gpus) return std::nullopt;
  return static_cast<int>(parse_integer(gpus->text, gpus->place, 1, kMostGpus));
}

/// `slots`: as many as the user asks for, where nothing names hosts. Without such a number this host gets a rank for
/// each of its GPUs, or for each share of them.
Hosts read_hosts(const SettingReader& reader, const Surroundings& surroundings, std::optional<int> slots,
                 const MapBy& map_by, Warnings& warnings) {
  const Environment& environment = surroundings.environment;
  if (const auto list = reader.find("hosts")) return {parse_host_list(list->text, list->place), {}};
  if (const auto file = reader.path("hostfile")) return hosts_of_file(*reader.find("hostfile"), file->text, warnings);
  if (const auto allocation = read_slurm_allocation(environment)) {
    warn_of_other_components(environment, warnings);
    return {allocation->hosts, SlurmJob{allocation->job_id, allocation->nodes}};
  }
  if (auto job = read_batch_job(environment)) return {std::move(job->hosts), {}};
  Host local = host_of_one("localhost");
  const int shares = surroundings.gpus / read_gpus_per_rank(reader).value_or(1);
  local.slots = std::max(slots.value_or(std::max(1, shares)), map_by.ranks_per_node);
  return {{local}, {}};
}

std::vector<int> find_local_hosts(const Allocation& allocation, std::string_view own_name) {
  std::vector<int> local;
  for (std::size_t i = 0; i < allocation.hosts.size(); ++i) {
    if (is_this_host(allocation.hosts[i], own_name)) local.push_back(static_cast<int>(i));
  }
  return local;
}

std::optional<int> read_num_proc(const SettingReader& reader) {
  const auto value = reader.find("num-proc");
  if (!value) return std::nullopt;
  return static_cast<int>(parse_integer(value->text, value->place, 1, kMaxRanks));
}

/// The shell has replaced a tilde on the command line, but not after '=' or in a config file.
std::string read_identity(const SettingReader& reader, const Environment& environment) {
  const auto typed = reader.find("ssh-identity-file");
  if (!typed) return "";
  auto path = *reader.path("ssh-identity-file");
  const auto home = environment.find("HOME");
  if (typed->text.substr(0, 2) == "~/" && home != environment.end()) path.text = home->second + typed->text.substr(1);
  check_readable_file(path.text, path.place);
  return path.text;
}

SshOptions read_ssh_options(const SettingReader& reader, const Environment& environment) {
  constexpr int kMostConcurrency = 10'000;
  SshOptions ssh;
  if (const auto port = reader.find("ssh-port"))
    ssh.port = static_cast<int>(parse_integer(port->text, port->place, 1, 65'535));
  ssh.identity = read_identity(reader, environment);
  ssh.accept_new_host_keys = reader.flag("accept-new-host-keys");
  if (const auto command = reader.find("ssh-command")) {
    if (command->text.find_first_not_of(" \t") == std::string::npos)
      throw Error(Errc::kUsage, fmt::format("{}: the command is empty; name a program such as ssh", command->place));
    ssh.command = command->text;
  }
  if (const auto value = reader.find("ssh-concurrency"))
    ssh.concurrency = static_cast<int>(parse_integer(value->text, value->place, 1, kMostConcurrency));
  ssh.connect_timeout = reader.positive_duration("connect-timeout", "connect").value_or(ssh.connect_timeout);
  return ssh;
}

/// A number of cores for each rank binds the ranks to cores, unless the user chooses another binding.
void bind_for_cores_per_rank(const SettingReader& reader, JobSpec& spec, Warnings& warnings) {
  int& cores = spec.map_by.cores_per_rank;
  if (cores == 0 || spec.slurm_task) return;
  const auto unit = reader.find("bind-to");
  if (!unit) spec.bind_to = spec.map_by.oversubscribe ? BindTo::kSharedCore : BindTo::kCore;
  if (spec.bind_to == BindTo::kCore || spec.bind_to == BindTo::kSharedCore) return;
  const SettingValue map_by = *reader.find("map-by");
  warnings.push_back(fmt::format("{} {}: PE={} has no effect with {} {}: it is a number of cores for --bind-to core",
                                 map_by.place, map_by.text, cores, unit->place, unit->text));
  cores = 0;
}

/// mpirun can number the ranks in another order than the one in which it places them.
void check_rank_by(const SettingReader& reader, const MapBy& map_by) {
  const auto order = reader.find("rank-by");
  if (!order) return;
  const bool by_node = map_by.policy == MapBy::Policy::kNode;
  const bool asks_for_node = order->text == "node";
  if (asks_for_node == by_node) return;
  throw Error(Errc::kUsage, fmt::format("{} {}: ranks are numbered in the order in which --map-by places them; write "
                                        "--map-by {}",
                                        order->place, order->text, asks_for_node ? "node" : "slot"));
}

void read_placement(const SettingReader& reader, JobSpec& spec, Warnings& warnings) {
  if (const auto unit = reader.find("bind-to")) spec.bind_to = parse_bind_to(unit->text, unit->place);
  bind_for_cores_per_rank(reader, spec, warnings);
  spec.display_map = reader.flag("display-map");
  const auto gpus = reader.find("gpus-per-rank");
  if (!gpus) return;
  spec.gpus_per_rank = *read_gpus_per_rank(reader);
  for (const Placement& placement : spec.allocation.placements) {
    const Host& host = spec.allocation.hosts.at(static_cast<std::size_t>(placement.host));
    const auto needed = static_cast<std::size_t>(placement.local_size) * static_cast<std::size_t>(spec.gpus_per_rank);
    if (host.gpus && host.gpus->size() < needed)
      throw Error(Errc::kUsage, fmt::format("{}: {} on {} need{} {}, and its gpus= names {}; start fewer ranks "
                                            "there or name more",
                                            gpus->place, counted(placement.local_size, "rank"), host.name,
                                            placement.local_size == 1 ? "s" : "",
                                            counted(static_cast<std::int64_t>(needed), "GPU"), host.gpus->size()));
  }
}

/// Options of which SLURM does the work, or that need an agent, which such a rank has not.
void warn_of_idle_options(const Settings& settings, Warnings& warnings) {
  for (const char* name : {"map-by", "bind-to", "gpus-per-rank", "display-map", "output-filename",
                           "prefix-output-with-timestamp", "tag-output", "stdin", "output-ranks", "network-interfaces",
                           "timeout", "stack-traces-on-timeout", "status-file"}) {
    const auto found = settings.find(name);
    if (found == settings.end()) continue;
    if (found->second.values == std::vector<std::string>{"false"}) continue;
    warnings.push_back(fmt::format("{} has no effect where srun has started the ranks; srun has options of its own",
                                   place_of(name, found->second)));
  }
}

/// The task that we are, when srun starts each rank as `runjob COMMAND`. Whoever names hosts wants a job of their own.
std::optional<SlurmTask> read_task(const SettingReader& reader, const Settings& settings,
                                   const Environment& environment, std::optional<int> np, Warnings& warnings) {
  if (reader.find("hosts") || reader.find("hostfile")) return std::nullopt;
  auto task = read_slurm_task(environment);
  if (!task) return std::nullopt;
  if (np && *np != task->size)
    throw Error(
        Errc::kUsage,
        fmt::format("{}: srun has started runjob {} times, each of which is one rank; leave the number out, or start "
                    "runjob once, without srun",
                    reader.find("num-proc")->place, task->size));
  warn_of_idle_options(settings, warnings);
  return task;
}

/// Reads the variables that the user exports to the ranks; an earlier source wins over a later one.
std::vector<ExportedVariables> read_exports(const SettingReader& reader, const Settings& settings,
                                            const Environment& environment, Warnings& warnings) {
  std::vector<ExportedVariables> exports;
  if (const auto given = settings.find("export"); given != settings.end())
    exports.push_back({"-x", export_variables(given->second, environment, warnings)});
  std::vector<SettingValue> files = reader.all("env-file");
  std::reverse(files.begin(), files.end());  // a later file wins
  for (const SettingValue& file : files)
    exports.push_back({file.text, read_env_file(file, reader.absolute(file), environment, warnings)});
  return exports;
}

/// Checks the variables of the ranks' runtime, and warns of those of Horovod that change nothing.
void warn_of_rank_variables(const JobSpec& spec, const std::vector<ExportedVariables>& exports, Warnings& warnings) {
  check_rank_variables(spec.environment, exports, spec.runtime_variables);
  Environment of_ranks = spec.environment_overrides;
  of_ranks.insert(spec.environment.begin(), spec.environment.end());
  const std::string warning = ignored_variables_warning(of_ranks);
  if (!warning.empty()) warnings.push_back(warning);
}

/// --stdin: the rank that has the launcher's standard input, by its number, or none.
bool read_forwards_input(const SettingReader& reader) {
  const auto who = reader.find("stdin");
  if (!who || who->text == "0") return true;
  if (who->text == "none") return false;
  throw Error(Errc::kUsage, fmt::format("{}: '{}' is neither 0 nor none: only rank 0 can read runjob's standard input",
                                        who->place, who->text));
}

void warn_of_mca(const Settings& settings, Warnings& warnings) {
  const auto mca = settings.find("mca");
  if (mca == settings.end()) return;
  warnings.push_back(fmt::format("{} is Open MPI's and has no effect here: {}", place_of("mca", mca->second),
                                 fmt::join(mca->second.values, ", ")));
}

Hosts find_hosts(const SettingReader& reader, const Surroundings& surroundings, const JobSpec& spec,
                 std::optional<int> np, const std::optional<ElasticSize>& elastic, Warnings& warnings) {
  if (spec.slurm_task) return {{host_of_one(spec.slurm_task->node_name)}, {}};
  std::optional<int> slots = np;
  if (elastic) {
    if (const auto wanted = read_first_hosts(reader, *elastic))
      return {surroundings.discover(*wanted, surroundings.environment), {}};
    slots = std::max({np.value_or(1), elastic->max_ranks.value_or(1), elastic->min_ranks}) + elastic->spares;
  }
  return read_hosts(reader, surroundings, slots, spec.map_by, warnings);
}

}  // namespace

JobSpec build_job_spec(const Settings& settings, const Surroundings& surroundings, Warnings& warnings) {
  const SettingReader reader(settings, surroundings.current_directory);
  JobSpec spec;
  std::optional<int> np = read_num_proc(reader);
  spec.slurm_task = read_task(reader, settings, surroundings.environment, np, warnings);
  if (spec.slurm_task) np = 1;
  if (const auto policy = reader.find("map-by")) spec.map_by = parse_map_by(policy->text, policy->place);
  if (reader.flag("oversubscribe")) spec.map_by.oversubscribe = true;
  check_rank_by(reader, spec.map_by);
  const std::optional<ElasticSize> elastic = read_elastic_size(reader, np, surroundings.as_horovodrun);
  Hosts hosts = find_hosts(reader, surroundings, spec, np, elastic, warnings);
  spec.slurm = std::move(hosts.slurm);
  if (elastic && spec.map_by.ranks_per_node == 0) np = elastic->first_ranks(count_slots(hosts.hosts));
  spec.allocation = allocate(hosts.hosts, np, spec.map_by);
  const int size = spec.slurm_task ? spec.slurm_task->size : static_cast<int>(spec.allocation.placements.size());
  if (elastic) {
    spec.elastic = read_elastic_settings(reader, *elastic, hosts.hosts, spec.allocation);
    spec.elastic->hostfile_owner = hosts.hostfile_owner;
  }
  read_placement(reader, spec, warnings);
  warn_of_mca(settings, warnings);
  warn_of_horovodrun_options(settings, warnings);
  // SLURM starts all ranks, also those on this host: what it signals, limits and accounts is then the same for each.
  if (!spec.slurm) spec.local_hosts = find_local_hosts(spec.allocation, surroundings.host_name);
  spec.environment = surroundings.environment;
  const std::vector<ExportedVariables> exports = read_exports(reader, settings, surroundings.environment, warnings);
  for (const ExportedVariables& each : exports)
    spec.environment_overrides.insert(each.variables.begin(), each.variables.end());
  if (reader.flag("tcp")) spec.environment_overrides.emplace("NCCL_IB_DISABLE", "1");
  spec.working_directory = surroundings.current_directory;
  if (const auto directory = reader.path("wdir")) {
    if (!spec.local_hosts.empty()) check_directory(directory->text, directory->place);
    spec.working_directory = directory->text;
  } else if (surroundings.current_directory.empty()) {
    throw Error(Errc::kUsage,
                "the current directory was deleted, and the ranks would run there; change to another one, or name one "
                "with --wdir");
  }
  spec.forwards_input = read_forwards_input(reader);
  if (const auto directory = reader.path("output-filename")) {
    check_output_directory(directory->text, directory->place);
    spec.output_directory = directory->text;
  }
  spec.prefix_output_with_timestamp = reader.flag("prefix-output-with-timestamp");
  if (const auto style = reader.find("tag-output")) spec.tags = parse_tag_style(style->text, style->place);
  if (const auto ranks = reader.find("output-ranks"))
    spec.output_ranks = parse_rank_list(ranks->text, ranks->place, size);
  const auto start_timeout = reader.duration("start-timeout").value_or(0ms);
  if (start_timeout.count() > 0) spec.start_timeout = start_timeout;  // 0 is the default, as for horovodrun
  spec.ssh = read_ssh_options(reader, surroundings.environment);
  const auto interfaces = settings.find("network-interfaces");
  if (interfaces != settings.end()) {
    const std::string place = place_of("network-interfaces", interfaces->second);
    spec.network_interfaces = parse_interface_filter(interfaces->second.values, place);
  }
  spec.time_limit = reader.positive_duration("timeout", "run");
  spec.grace_period = reader.duration("grace-period").value_or(spec.grace_period);
  spec.stack_traces_on_timeout = reader.flag("stack-traces-on-timeout");
  spec.continue_on_failure = reader.flag("continue-on-failure");
  spec.runtime_variables = read_runtime_variables(reader);
  spec.runtime_options = runtime_options(settings);
  if (elastic) spec.runtime_variables.merge(read_commit_variables(reader));
  warn_of_rank_variables(spec, exports, warnings);
  spec.status_file = reader.writable_file("status-file");
  spec.verbose = reader.flag("verbose");
  if (spec.slurm_task && spec.slurm_task->rank != 0) warnings.clear();  // task 0 has the same ones
  return spec;
}

}  // namespace runjob
