#include "runtime/engine/job.hpp"

#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "rendezvous/client.hpp"
#include "runtime/collectives/backend_registry.hpp"
#include "runtime/engine/bootstrap_blob.hpp"
#include "runtime/engine/control_connect.hpp"
#include "runtime/engine/host_address.hpp"
#include "runtime/engine/timeline_observer.hpp"

namespace runjob::runtime {
namespace {

using rendezvous::JoinReply;

/// What this rank has made for itself before it meets the others.
struct Prepared {
  EngineParts parts;
  std::optional<ControlListener> listener;  ///< rank 0's
  BootstrapBlob blob;
};

std::vector<std::string> host_of_each_rank(const JoinReply& place) {
  std::vector<std::string> hosts;
  for (const int host : place.hosts) hosts.push_back(place.hostnames.at(static_cast<std::size_t>(host)));
  if (hosts.size() != static_cast<std::size_t>(place.size) || place.rank < 0 || place.rank >= place.size) {
    throw Error(Errc::kProtocol, "the rendezvous gave a place that makes no sense");
  }
  return hosts;
}

JoinReply place_of_single_process() {
  JoinReply place;
  place.hostname = "localhost";
  place.hosts = {0};
  place.hostnames = {"localhost"};
  return place;
}

EngineParts make_parts(const RuntimeConfig& config, const JoinReply& place) {
  EngineParts parts;
  parts.rank = place.rank;
  parts.hosts = host_of_each_rank(place);
  parts.stall_limits = config.stall_limits;
  if (config.timeline && place.rank == 0) {
    parts.timeline = std::make_unique<Timeline>(*config.timeline, "RUNJOB_TIMELINE", config.timeline_mark_cycles);
  }
  return parts;
}

/// Where a Unix socket of the job's own may be: beside the rendezvous', when that is one; empty otherwise.
std::string socket_directory(const RuntimeConfig& config) {
  constexpr std::string_view kUnix = "unix:";
  const std::string& address = *config.rendezvous;
  const std::size_t slash = address.rfind('/');
  if (!address.starts_with(kUnix) || slash == address.npos) return {};
  return address.substr(kUnix.size(), slash - kUnix.size());
}

MeshOptions mesh_options(const RuntimeConfig& config, const JoinReply& place, std::chrono::milliseconds timeout) {
  const std::string address =
      choose_address(list_addresses(), {place.hostnames.size() == 1, config.interface, config.address});
  MeshOptions options{place.rank, place.size, address, /*connect_timeout=*/timeout,
                      /*operation_timeout=*/config.gloo_timeout};
  options.hosts = place.hosts;
  options.cma = config.cma;
  options.hierarchical_allreduce = config.hierarchical_allreduce;
  options.hierarchical_allgather = config.hierarchical_allgather;
  return options;
}

/// With shared memory where there can be some; the ranks' addresses then tell whether all can use it.
std::unique_ptr<Backend> choose_backend(const RuntimeConfig& config, const JoinReply& place,
                                        const MeshOptions& options) {
  if (place.size == 1 || !config.shared_memory) return make_backend(options);
  if (place.hostnames.size() == 1) return make_shared_memory_backend(options, socket_directory(config));
  const bool is_flat = !config.hierarchical_allreduce && !config.hierarchical_allgather;
  return is_flat ? make_backend(options) : make_hierarchical_backend(options, socket_directory(config));
}

Prepared prepare(const RuntimeConfig& config, const JoinReply& place, std::chrono::milliseconds timeout) {
  Prepared prepared;
  prepared.parts = make_parts(config, place);
  const MeshOptions options = mesh_options(config, place, timeout);
  prepared.parts.backend = choose_backend(config, place, options);
  prepared.blob.mesh = prepared.parts.backend->address();
  if (place.rank != 0) return prepared;
  prepared.listener = listen_for_members(options.bind_address, place.size);
  prepared.blob.control_address = options.bind_address;
  prepared.blob.control_port = prepared.listener->port;
  prepared.blob.token = make_token();
  prepared.blob.cache_capacity = config.cache_capacity;
  return prepared;
}

/// A rank that cannot take part still comes, to tell the others why instead of letting them wait.
Prepared prepare_or_excuse(const RuntimeConfig& config, const JoinReply& place, std::chrono::milliseconds timeout) {
  try {
    return prepare(config, place, timeout);
  } catch (const Error& error) {
    Prepared prepared;
    prepared.blob.error = error.what();
    return prepared;
  }
}

std::vector<BootstrapBlob> gather(rendezvous::Client& client, const std::string& name, const BootstrapBlob& own,
                                  const JoinReply& place, std::chrono::milliseconds timeout) {
  std::vector<BootstrapBlob> blobs;
  for (const std::string& bytes : client.gather(name, encode(own), timeout)) {
    blobs.push_back(decode_bootstrap_blob(bytes));
  }
  const std::vector<std::string> hosts = host_of_each_rank(place);
  for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
    if (blobs[rank].error.empty()) continue;
    throw Error(Errc::kUnavailable,
                fmt::format("{} cannot take part: {}", rank_text(static_cast<int>(rank), hosts), blobs[rank].error));
  }
  return blobs;
}

std::vector<std::string> addresses_of(const std::vector<BootstrapBlob>& blobs) {
  std::vector<std::string> addresses;
  for (const BootstrapBlob& blob : blobs) addresses.push_back(blob.mesh);
  return addresses;
}

/// The ranks cannot share memory, as every one of them has found alike: they meet once more, with addresses of their network.
std::vector<std::string> meet_again(rendezvous::Client& client, const RuntimeConfig& config, const JoinReply& place,
                                    Prepared& prepared, const std::string& name, std::chrono::milliseconds timeout) {
  BootstrapBlob own;
  try {
    prepared.parts.backend = make_backend(mesh_options(config, place, timeout));
    own.mesh = prepared.parts.backend->address();
  } catch (const Error& error) {
    own.error = error.what();
  }
  return addresses_of(gather(client, name, own, place, timeout));
}

/// What a rank knows of all when it has met them.
struct Meeting {
  BootstrapBlob root;                  ///< rank 0's
  std::vector<std::string> addresses;  ///< of the backend, by rank
};

Meeting meet(rendezvous::Client& client, const RuntimeConfig& config, const JoinReply& place, Prepared& prepared,
             std::chrono::milliseconds timeout, InitCounts& counts) {
  int& round = counts[{*config.rendezvous, place.generation}];
  const std::string name = fmt::format("runtime.init.{}.{}", place.generation, round);
  const std::vector<BootstrapBlob> blobs = gather(client, name, prepared.blob, place, timeout);
  ++round;
  Meeting meeting{blobs.front(), addresses_of(blobs)};
  const SharingVerdict sharing = judge_sharing(meeting.addresses, place.hosts);
  if (sharing.objection.empty()) return meeting;
  if (place.rank == 0) {
    log::warn(
        "ranks use TCP although they are on one host, since they cannot share memory: {}; RUNJOB_SHARED_MEMORY=0 "
        "for all of them says that this is meant",
        sharing.objection);
  }
  meeting.addresses = meet_again(client, config, place, prepared, name + ".tcp", timeout);
  return meeting;
}

std::unique_ptr<ControlPlane> connect_control(Prepared& prepared, const BootstrapBlob& root, const JoinReply& place,
                                              std::unique_ptr<NegotiationObserver> observer, Deadline deadline) {
  const std::vector<std::string> hosts = host_of_each_rank(place);
  if (place.rank != 0) {
    return std::make_unique<Member>(
        connect_to_coordinator(root.control_address, root.control_port, root.token, place.rank, deadline),
        rank_text(0, hosts));
  }
  return std::make_unique<Coordinator>(hosts, accept_members(*prepared.listener, root.token, hosts, deadline),
                                       std::move(observer));
}

std::unique_ptr<NegotiationObserver> observer_for(Timeline* timeline) {
  return timeline == nullptr ? nullptr : std::make_unique<TimelineObserver>(*timeline);
}

Job join_alone(const RuntimeConfig& config) {
  Job job;
  job.place = place_of_single_process();
  EngineParts parts = make_parts(config, job.place);
  parts.cache_capacity = config.cache_capacity;
  parts.backend = make_backend({});
  parts.control = std::make_unique<Coordinator>(job.place.hostnames, std::vector<ControlChannel>(1),
                                                observer_for(parts.timeline.get()));
  job.engine = std::make_unique<Engine>(std::move(parts));
  job.engine->connect({""}).throw_if_failed();
  return job;
}

}  // namespace

Job join_job(const RuntimeConfig& config, InitCounts& counts) {
  log::configure(config.log_level, "");
  for (const std::string& warning : config.warnings) log::warn("{}", warning);
  if (!config.rendezvous) return join_alone(config);

  const auto start = std::chrono::steady_clock::now();
  constexpr std::chrono::milliseconds kJoinTimeout{30000};
  rendezvous::Client client(*config.rendezvous, config.rank, config.job_key_file);
  Job job;
  job.place = client.join(config.start_timeout.value_or(kJoinTimeout));
  const JoinReply& place = job.place;
  log::configure(config.log_level, fmt::format("rank {} on {}: ", place.rank, place.hostname));
  const auto timeout = config.start_timeout.value_or(
      std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(place.start_timeout_seconds)));
  const Deadline deadline = start + timeout;

  Prepared prepared = prepare_or_excuse(config, place, timeout);
  const Meeting meeting = meet(client, config, place, prepared, timeout, counts);
  prepared.parts.control =
      connect_control(prepared, meeting.root, place, observer_for(prepared.parts.timeline.get()), deadline);
  prepared.parts.cache_capacity = meeting.root.cache_capacity;
  const Backend& backend = *prepared.parts.backend;
  job.engine = std::make_unique<Engine>(std::move(prepared.parts));
  job.engine->connect(meeting.addresses).throw_if_failed();
  job.symmetric_heap = backend.symmetric_heap();
  job.failure_report = std::make_unique<FailureReport>(*config.rendezvous, place.rank);
  return job;
}

}  // namespace runjob::runtime
