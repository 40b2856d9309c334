#include "runtime/job/mesh_setup.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/backends/backend_registry.hpp"
#include "runtime/backends/backend_text.hpp"
#include "runtime/backends/mesh_agreement.hpp"
#include "runtime/collectives/shm/tuning/processor_share.hpp"
#include "runtime/engine/timeline_observer.hpp"
#include "runtime/job/failure_report.hpp"
#include "runtime/job/host_address.hpp"
#include "runtime/links/link_setup.hpp"

namespace runjob::runtime {

std::string socket_directory(const RuntimeConfig& config) {
  constexpr std::string_view kUnix = "unix:";
  const std::string address = config.rendezvous.value_or("");
  const std::size_t slash = address.rfind('/');
  if (!address.starts_with(kUnix) || slash == address.npos) return {};
  return address.substr(kUnix.size(), slash - kUnix.size());
}

namespace {

/// By member: its rank in the job.
std::vector<int> names_of(const MeshPlan& plan) {
  std::vector<int> names;
  for (int member = 0; member < plan.size(); ++member) names.push_back(plan.members.rank(member));
  return names;
}

/// Without an address of this host. A process that is alone has no start timeout.
MeshOptions member_options(const RuntimeConfig& config, const MeshPlan& plan) {
  MeshOptions options{plan.rank, plan.size(), /*bind_address=*/""};
  if (plan.timeout.count() != 0) options.connect_timeout = plan.timeout;
  options.operation_timeout = config.gloo_timeout;
  options.names = names_of(plan);
  options.hosts = plan.hosts;
  options.job_key = plan.key_bytes();
  options.encrypts = config.encrypt_data;
  return options;
}

MeshOptions mesh_options(const RuntimeConfig& config, const MeshPlan& plan) {
  MeshOptions options = member_options(config, plan);
  if (plan.size() > 1) {
    options.bind_address = choose_address(list_addresses(), {plan.has_one_host(), config.interface, config.address});
  }
  return options;
}

BackendSettings backend_settings(const RuntimeConfig& config, const MeshPlan& plan) {
  return {.cma = config.cma,
          .symmetric_memory = plan.members.process_set() == 0,  // a process set uses its job's memory, or none
          .job_buffers = plan.job_buffers,
          .hierarchical_allreduce = config.hierarchical_allreduce,
          .hierarchical_allgather = config.hierarchical_allgather,
          .gloo = config.gloo};
}

/// The backend that this rank chooses from what it alone knows. The ranks' addresses then show whether all can use it.
std::unique_ptr<Backend> choose_backend(const RuntimeConfig& config, const MeshPlan& plan, MeshOptions options) {
  if (plan.size() == 1) return make_local_backend();
  const bool shares_memory = config.shared_memory && !config.gloo;
  if (shares_memory && plan.has_one_host()) {
    return make_shared_memory_backend(options, backend_settings(config, plan), socket_directory(config));
  }
  if (!shares_memory) {
    options.groups.resize(options.hosts.size());
    std::iota(options.groups.begin(), options.groups.end(), 0);
  }
  return make_hierarchical_backend(options, backend_settings(config, plan), socket_directory(config));
}

Prepared prepare(const RuntimeConfig& config, const MeshPlan& plan) {
  Prepared prepared;
  prepared.encrypts = config.encrypt_data;
  const MeshOptions options = mesh_options(config, plan);
  prepared.backend = choose_backend(config, plan, options);
  prepared.blob.mesh = prepared.backend->address();
  if (plan.size() > 1 && plan.members.process_set() == 0) {
    prepared.messages = listen_for_members(options.bind_address, plan.size());
    prepared.blob.messages = encode(prepared.messages->address);
  }
  if (plan.rank != 0) return prepared;
  prepared.blob.cache_capacity = config.cache_capacity;
  prepared.blob.fusion_threshold = config.fusion.threshold_bytes;
  prepared.blob.mixes_groups = config.fusion.mixes_groups;
  if (plan.size() == 1) return prepared;
  prepared.listener = listen_for_members(options.bind_address, plan.size());
  prepared.blob.control = encode(prepared.listener->address);
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

/// Called on all ranks when not all of them made their backends for the groups and settings that all can use. They meet
/// once more, with the addresses of new backends.
std::vector<std::string> meet_again(const RuntimeConfig& config, const MeshPlan& plan, const MeshAgreement& agreement,
                                    Prepared& prepared, const Gather& gather) {
  BootstrapBlob own;
  try {
    if (plan.rank >= 0) {
      MeshOptions options = mesh_options(config, plan);
      options.groups = agreement.groups;
      BackendSettings settings = backend_settings(config, plan);
      settings.hierarchical_allreduce = settings.hierarchical_allreduce && !agreement.is_flat;
      settings.hierarchical_allgather = settings.hierarchical_allgather && !agreement.is_flat;
      settings.gloo = settings.gloo && !agreement.is_flat;
      prepared.backend = make_hierarchical_backend(options, settings, socket_directory(config));
      own.mesh = prepared.backend->address();
    }
  } catch (const Error& error) {
    own.error = error.what();
  }
  const std::vector<BootstrapBlob> blobs = gather("tcp", own);
  check_all(blobs, plan.members);
  return addresses_of(blobs);
}

void warn_of(const MeshAgreement& agreement) {
  if (!agreement.sharing_objection.empty()) {
    log::warn(
        "ranks use TCP although they are on one host, since they cannot share memory: {}; RUNJOB_SHARED_MEMORY=0 "
        "for all of them says that this is meant",
        agreement.sharing_objection);
  }
  if (!agreement.settings_objection.empty()) {
    log::warn("collectives go among all ranks alike, since the ranks' settings differ: {}",
              agreement.settings_objection);
  }
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
  Meeting meeting{blobs.front(), addresses_of(blobs), {}};
  for (const BootstrapBlob& blob : blobs) meeting.messages.push_back(blob.messages);
  const MeshAgreement agreement = agree_on_mesh(meeting.addresses, plan.hosts, names_of(plan));
  if (plan.rank == 0 && plan.members.process_set() == 0) warn_of(agreement);  // a process set repeats the job's reasons
  meeting.backend = backend_text(agreement, plan.hosts, backend_settings(config, plan));
  if (!agreement.is_as_prepared) {
    log::info("the ranks make new backends, because not all of them can use those that they prepared");
    meeting.addresses = meet_again(config, plan, agreement, prepared, gather);
  }
  return meeting;
}

/// The place where the first member listens for the control plane; empty when it is alone.
static LinkAddress coordinator_address(const MeshPlan& plan, const BootstrapBlob& root) {
  return plan.size() > 1 ? decode_link_address(root.control, rank_text(0, plan.members)) : LinkAddress();
}

std::unique_ptr<ControlPlane> connect_control(const Prepared& prepared, const MeshPlan& plan, const BootstrapBlob& root,
                                              std::unique_ptr<TraceReceiver> trace, Deadline deadline, int cancel) {
  const LinkAddress coordinator = coordinator_address(plan, root);
  LinkPlan links;
  links.own = plan.rank;
  links.purpose = "control";
  links.key = make_link_key(plan.key_bytes(), "runjob control 1: key", {coordinator.nonce});
  links.encrypts = prepared.encrypts;
  links.deadline = deadline;
  links.cancel = cancel;
  if (plan.rank != 0) {
    links.peers[0] = {coordinator, fmt::format("rank {}", plan.members.rank(0))};
    std::map<int, LinkStream> streams = connect_links(/*listener=*/-1, links);
    return std::make_unique<Member>(ControlChannel(std::move(streams.at(0))), rank_text(0, plan.members));
  }
  for (int member = 1; member < plan.size(); ++member) links.peers[member] = {{}, rank_text(member, plan.members)};
  std::vector<ControlChannel> channels(static_cast<std::size_t>(plan.size()));
  if (prepared.listener) {
    for (auto& [member, stream] : connect_links(prepared.listener->socket.get(), links))
      channels[static_cast<std::size_t>(member)] = ControlChannel(std::move(stream));
  }
  return std::make_unique<Coordinator>(plan.members, std::move(channels), std::move(trace));
}

std::shared_ptr<RankMessages> make_messages(const RuntimeConfig& config, const MeshPlan& plan,
                                            std::optional<Listener> own, const Meeting& meeting,
                                            std::function<void(const Status&)> on_broken) {
  MessageTerms terms;
  terms.rank = plan.rank;
  terms.members = plan.members;
  terms.hosts = plan.hosts;
  terms.may_read = config.cma && config.shared_memory;
  terms.encrypts = config.encrypt_data;
  terms.on_broken = std::move(on_broken);
  terms.listener = std::move(own);
  if (!terms.listener) return std::make_shared<RankMessages>(std::move(terms));
  std::vector<rendezvous::Nonce> nonces;
  for (const std::string& text : meeting.messages) {
    const int rank = static_cast<int>(nonces.size());
    terms.addresses.push_back(decode_link_address(text, rank_text(rank, plan.members)));
    nonces.push_back(terms.addresses.back().nonce);
  }
  terms.key = make_link_key(plan.key_bytes(), "runjob messages 1: key", nonces);
  const auto here = std::count(plan.hosts.begin(), plan.hosts.end(), plan.hosts[static_cast<std::size_t>(plan.rank)]);
  constexpr std::chrono::microseconds kLongestSpin{50};
  if (processor_share({own_processors()}) > static_cast<double>(here)) terms.spin = kLongestSpin;
  return std::make_shared<RankMessages>(std::move(terms));
}

Secret object_key(const MeshPlan& plan, const BootstrapBlob& root) {
  return make_link_key(plan.key_bytes(), "runjob objects 1: key", {coordinator_address(plan, root).nonce});
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
  if (config.rendezvous) {
    // In an elastic job the launcher knows this process by its number.
    const int self = config.elastic ? config.rank : plan.members.rank(plan.rank);
    parts.on_stall_ends_job = [address = *config.rendezvous, self](int late, const std::string& reason) {
      FailureReport report(address, self);
      return late >= 0 ? report.late(late, reason) : report.mutual(reason);
    };
    parts.on_lost_connection = [address = *config.rendezvous, self](int lost, const std::string& reason) {
      FailureReport(address, self).lost_connection(lost, reason);
    };
  }
  parts.timeline = std::make_unique<EngineTimeline>(std::move(timeline), plan.members.process_set());
  auto trace = std::make_unique<TimelineReceiver>(*parts.timeline);
  parts.control = connect_control(prepared, plan, meeting.root, std::move(trace), deadline, cancel);
  MeshOptions gpus = member_options(config, plan);
  gpus.encrypts = config.encrypt_data && !config.nccl_unencrypted;
  const StallLimits& stalls = config.stall_limits;
  const DeviceTerms terms{config.has_process_sets || config.dynamic_process_sets, stalls.warning, stalls.failure};
  parts.backends = std::make_unique<BackendSet>(std::move(prepared.backend), gpu_maker(gpus, terms));
  return std::make_shared<Engine>(std::move(parts));
}

}  // namespace runjob::runtime
