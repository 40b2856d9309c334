#include "runtime/engine/mesh_setup.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/collectives/backend_registry.hpp"
#include "runtime/engine/host_address.hpp"
#include "runtime/engine/timeline_observer.hpp"

namespace runjob::runtime {
namespace {

/// Where a Unix socket of the job's own may be: beside the rendezvous', when that is one; empty otherwise.
std::string socket_directory(const RuntimeConfig& config) {
  constexpr std::string_view kUnix = "unix:";
  const std::string address = config.rendezvous.value_or("");
  const std::size_t slash = address.rfind('/');
  if (!address.starts_with(kUnix) || slash == address.npos) return {};
  return address.substr(kUnix.size(), slash - kUnix.size());
}

MeshOptions mesh_options(const RuntimeConfig& config, const MeshPlan& plan) {
  MeshOptions options{plan.rank, plan.size(), /*bind_address=*/"", /*connect_timeout=*/plan.timeout,
                      /*operation_timeout=*/config.gloo_timeout};
  if (plan.size() > 1) {
    options.bind_address = choose_address(list_addresses(), {plan.has_one_host(), config.interface, config.address});
  }
  for (int member = 0; member < plan.size(); ++member) options.names.push_back(plan.members.rank(member));
  options.hosts = plan.hosts;
  options.cma = config.cma;
  options.symmetric_memory = plan.members.process_set() == 0;  // a process set has its job's, or none
  options.symmetric_heap = plan.symmetric_heap;
  options.cache_directory = config.cache_directory;
  options.hierarchical_allreduce = config.hierarchical_allreduce;
  options.hierarchical_allgather = config.hierarchical_allgather;
  return options;
}

/// With shared memory where there can be some; the ranks' addresses then tell whether all can use it.
std::unique_ptr<Backend> choose_backend(const RuntimeConfig& config, const MeshPlan& plan, const MeshOptions& options) {
  if (plan.size() == 1 || !config.shared_memory) return make_backend(options);
  if (plan.has_one_host()) return make_shared_memory_backend(options, socket_directory(config));
  const bool is_flat = !config.hierarchical_allreduce && !config.hierarchical_allgather;
  return is_flat ? make_backend(options) : make_hierarchical_backend(options, socket_directory(config));
}

Prepared prepare(const RuntimeConfig& config, const MeshPlan& plan) {
  Prepared prepared;
  const MeshOptions options = mesh_options(config, plan);
  prepared.backend = choose_backend(config, plan, options);
  prepared.blob.mesh = prepared.backend->address();
  if (plan.rank != 0) return prepared;
  prepared.blob.cache_capacity = config.cache_capacity;
  prepared.blob.fusion_threshold = config.fusion.threshold_bytes;
  prepared.blob.mixes_groups = config.fusion.mixes_groups;
  if (plan.size() == 1) return prepared;
  prepared.listener = listen_for_members(options.bind_address, plan.size());
  prepared.blob.control_address = options.bind_address;
  prepared.blob.control_port = prepared.listener->port;
  prepared.blob.token = make_token();
  return prepared;
}

void check_all(const std::vector<BootstrapBlob>& blobs, const Members& members) {
  for (std::size_t member = 0; member < blobs.size(); ++member) {
    if (blobs[member].error.empty()) continue;
    throw Error(Errc::kUnavailable, fmt::format("{} cannot take part: {}", rank_text(static_cast<int>(member), members),
                                                blobs[member].error));
  }
}

std::vector<std::string> addresses_of(const std::vector<BootstrapBlob>& blobs) {
  std::vector<std::string> addresses;
  for (const BootstrapBlob& blob : blobs) addresses.push_back(blob.mesh);
  return addresses;
}

/// The ranks cannot share memory, as every one of them has found alike: they meet once more, with addresses of their network.
std::vector<std::string> meet_again(const RuntimeConfig& config, const MeshPlan& plan, Prepared& prepared,
                                    const Gather& gather) {
  BootstrapBlob own;
  try {
    if (plan.rank >= 0) {
      prepared.backend = make_backend(mesh_options(config, plan));
      own.mesh = prepared.backend->address();
    }
  } catch (const Error& error) {
    own.error = error.what();
  }
  const std::vector<BootstrapBlob> blobs = gather("tcp", own);
  check_all(blobs, plan.members);
  return addresses_of(blobs);
}

}  // namespace

bool MeshPlan::has_one_host() const {
  return std::all_of(hosts.begin(), hosts.end(), [&](int host) { return host == hosts.front(); });
}

Prepared prepare_mesh(const RuntimeConfig& config, const MeshPlan& plan) {
  if (plan.rank < 0) return {};
  try {
    return prepare(config, plan);
  } catch (const Error& error) {
    Prepared prepared;
    prepared.blob.error = error.what();
    return prepared;
  }
}

Meeting meet(const RuntimeConfig& config, const MeshPlan& plan, Prepared& prepared, const Gather& gather) {
  const std::vector<BootstrapBlob> blobs = gather("mesh", prepared.blob);
  check_all(blobs, plan.members);
  Meeting meeting{blobs.front(), addresses_of(blobs)};
  const SharingVerdict sharing = judge_sharing(meeting.addresses, plan.hosts);
  if (sharing.objection.empty()) return meeting;
  if (plan.rank == 0 && plan.members.process_set() == 0) {  // a process set's ranks need not be told again
    log::warn(
        "ranks use TCP although they are on one host, since they cannot share memory: {}; RUNJOB_SHARED_MEMORY=0 "
        "for all of them says that this is meant",
        sharing.objection);
  }
  meeting.addresses = meet_again(config, plan, prepared, gather);
  return meeting;
}

std::unique_ptr<ControlPlane> connect_control(const Prepared& prepared, const MeshPlan& plan, const BootstrapBlob& root,
                                              std::unique_ptr<NegotiationObserver> observer, Deadline deadline,
                                              int cancel) {
  const WaitLimits limits{deadline, cancel};
  if (plan.rank != 0) {
    const ControlAddress coordinator{root.control_address, root.control_port, root.token};
    const std::string name = fmt::format("rank {}", plan.members.rank(0));
    return std::make_unique<Member>(connect_to_member(coordinator, plan.rank, name, limits),
                                    rank_text(0, plan.members));
  }
  std::vector<ControlChannel> channels(1);
  if (plan.size() > 1) {
    std::vector<std::string> names;
    for (int member = 0; member < plan.size(); ++member) names.push_back(rank_text(member, plan.members));
    channels = accept_members(*prepared.listener, root.token, /*own=*/0, names, limits);
  }
  return std::make_unique<Coordinator>(plan.members, std::move(channels), std::move(observer));
}

std::shared_ptr<Engine> make_engine(const RuntimeConfig& config, const MeshPlan& plan, Prepared prepared,
                                    const Meeting& meeting, std::shared_ptr<Timeline> timeline, Deadline deadline,
                                    int cancel) {
  EngineParts parts;
  parts.rank = plan.rank;
  parts.members = plan.members;
  parts.cache_capacity = meeting.root.cache_capacity;
  parts.fusion = {meeting.root.fusion_threshold, meeting.root.mixes_groups};
  parts.cycle_time = config.cycle_time;
  parts.stall_limits = config.stall_limits;
  parts.timeline = std::make_unique<EngineTimeline>(std::move(timeline), plan.members.process_set());
  auto observer = std::make_unique<TimelineObserver>(*parts.timeline, plan.members);
  parts.control = connect_control(prepared, plan, meeting.root, std::move(observer), deadline, cancel);
  parts.backend = std::move(prepared.backend);
  return std::make_shared<Engine>(std::move(parts));
}

}  // namespace runjob::runtime
