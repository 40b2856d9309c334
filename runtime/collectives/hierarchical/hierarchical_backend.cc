#include "runtime/collectives/hierarchical/hierarchical_backend.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/collectives/hierarchical/allgather.hpp"
#include "runtime/collectives/hierarchical/allreduce.hpp"
#include "runtime/collectives/hierarchical/alltoall.hpp"
#include "runtime/collectives/hierarchical/broadcast.hpp"
#include "runtime/collectives/hierarchical/link_measurement.hpp"
#include "runtime/collectives/shm/tuning/processor_share.hpp"
#include "runtime/links/link_setup.hpp"

namespace runjob::runtime {
namespace {

/// About as long as it takes to sleep and to be woken.
constexpr std::chrono::microseconds kLongestSpin{50};

/// The layout of this host. All hosts cut messages alike: as the fullest one does.
Layout layout_of(const Topology& topology) {
  std::size_t most = 1;
  for (int host = 0; host < topology.hosts(); ++host) most = std::max(most, topology.ranks(host).size());
  const Layout fullest(static_cast<int>(most));
  return Layout(topology.local_size(), fullest.cell_bytes(), fullest.ring_cell_bytes(),
                FarBoard::bytes(topology.size()));
}

std::string settings_of(const HierarchicalOptions& options) {
  return fmt::format("hierarchical allreduce {}, allgather {}, else {}", options.allreduce ? "on" : "off",
                     options.allgather ? "on" : "off", options.flat_name);
}

}  // namespace

bool HierarchicalOptions::is_flat(Kind kind) const {
  return is_always_flat() || (kind == Kind::kAllreduce && !allreduce) || (kind == Kind::kAllgather && !allgather);
}

HierarchicalBackend::HierarchicalBackend(const MeshOptions& options, const std::string& socket_directory,
                                         HostParts parts, HierarchicalOptions hierarchical)
    : options_(options),
      hierarchical_(hierarchical),
      topology_(options.rank, options.groups.empty() ? options.hosts : options.groups, options.names),
      machines_(options.rank, options.hosts),
      layout_(layout_of(topology_)),
      memory_(topology_, layout_) {
  HostOffer offer;
  offer.settings = settings_of(hierarchical);
  offer.processors = own_processors();
  cancel_.emplace();
  if (topology_.local_size() == machines_.local_size()) offer.sharing = memory_.offer(socket_directory);
  if (topology_.local_rank() < topology_.columns() && !hierarchical_.is_always_flat()) {
    transport_ = parts.make_transport(transport_options());
    offer.transport = transport_->address();
  }
  if (topology_.local_rank() == 0 && topology_.hosts() > 1 && hierarchical_.rounds) {
    listener_ = listen_for_members(options_.bind_address, topology_.hosts());
    offer.leader = encode(listener_.address);
  }
  if (hierarchical_.needs_flat_mesh()) {
    flat_ = parts.make_flat(options);
    offer.flat = flat_->address();
  }
  address_ = encode(offer);
}

TransportOptions HierarchicalBackend::transport_options() const {
  TransportOptions options;
  options.member = topology_.host();
  for (const int rank : topology_.column(topology_.local_rank())) options.ranks.push_back(options_.name(rank));
  options.bind_address = options_.bind_address;
  options.job_key = options_.job_key;
  options.encrypts = options_.encrypts;
  options.connect_timeout = options_.connect_timeout;
  options.operation_timeout = options_.operation_timeout;
  const int hosts = topology_.hosts(), left = (options.member + hosts - 1) % hosts,
            right = (options.member + 1) % hosts;
  if (topology_.local_rank() == 0) options.short_peers = Cube(hosts).neighbours(options.member);
  if (topology_.local_rank() == 0 || topology_.columns_reach_all()) {
    for (int host = 0; host < hosts; ++host) {
      if (host != options.member) options.long_peers.push_back(host);
    }
  } else {
    options.long_peers.push_back(right);
    if (left != right) options.long_peers.push_back(left);
  }
  return options;
}

HierarchicalBackend::~HierarchicalBackend() {
  HierarchicalBackend::abort(Status(Errc::kAborted, "the backend was closed"));
}

Status HierarchicalBackend::connect(const std::vector<std::string>& addresses) {
  try {
    std::vector<HostOffer> offers;
    for (const std::string& address : addresses)
      offers.push_back(decode_host_offer(address, options_.name(static_cast<int>(offers.size()))));
    check_settings(offers);
    meet_host(offers);
    meet_others(offers);
    channels_ = std::make_unique<HostChannels>(HostChannels{topology_, *local_, transport_.get()});
    if (!hierarchical_.is_always_flat())
      channels_->costs = measure_links(*channels_, processors_ >= machines_.local_size());
    if (topology_.hosts() > 1 && hierarchical_.rounds) make_rounds(offers);
  } catch (const Error& error) {
    return fail(error, "while starting");
  }
  const MutexLock lock(mutex_);
  return failure_;
}

/// Errors  Error(kMismatch).
void HierarchicalBackend::check_settings(const std::vector<HostOffer>& offers) const {
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    if (offers[rank].settings == offers.front().settings) continue;
    throw Error(Errc::kMismatch,
                fmt::format("rank {} has '{}', but rank {} '{}'", options_.name(static_cast<int>(rank)),
                            offers[rank].settings, options_.name(0), offers.front().settings));
  }
}

void HierarchicalBackend::meet_host(const std::vector<HostOffer>& offers) {
  const std::vector<int>& ranks = topology_.ranks(topology_.host());
  const WaitLimits limits{std::chrono::steady_clock::now() + options_.connect_timeout, cancel_->get(), local_names()};
  memory_.join(offers.at(static_cast<std::size_t>(ranks.front())).sharing, options_.name(ranks.front()), limits);
  const std::vector<std::string> processors = processors_of_host(offers);
  processors_ = processor_share(processors);
  const auto rank = static_cast<std::size_t>(machines_.local_rank());
  if (has_processor_to_spin(processors, processors_, rank)) spin_ = kLongestSpin;
  GroupOptions options{topology_.local_rank(), Patience::for_ranks(machines_.local_size(), processors_),
                       options_.operation_timeout};
  options.names = local_names();
  options.work = transport_.get();
  local_ = std::make_unique<Channels>(memory_.data(), layout_, options);
  const MutexLock lock(mutex_);
  failure_.throw_if_failed();
  group_ = &local_->group;
}

/// The numbers of this host's ranks in their job, for messages.
std::vector<int> HierarchicalBackend::local_names() const {
  std::vector<int> names;
  for (const int rank : topology_.ranks(topology_.host())) names.push_back(options_.name(rank));
  return names;
}

/// own_processors() of each rank of the host, in the order of its ranks.
std::vector<std::string> HierarchicalBackend::processors_of_host(const std::vector<HostOffer>& offers) const {
  std::vector<std::string> processors;
  for (const int rank : machines_.ranks(machines_.host()))
    processors.push_back(offers.at(static_cast<std::size_t>(rank)).processors);
  return processors;
}

void HierarchicalBackend::meet_others(const std::vector<HostOffer>& offers) {
  if (transport_) {
    std::vector<std::string> addresses;
    for (const int rank : topology_.column(topology_.local_rank()))
      addresses.push_back(offers.at(static_cast<std::size_t>(rank)).transport);
    transport_->spin_for(spin_);
    transport_->connect(addresses).throw_if_failed();
  }
  if (!flat_) return;
  std::vector<std::string> addresses;
  for (const HostOffer& offer : offers) addresses.push_back(offer.flat);
  flat_->connect(addresses).throw_if_failed();
}

void HierarchicalBackend::make_rounds(const std::vector<HostOffer>& offers) {
  const FarBoard board(static_cast<std::byte*>(memory_.data()) + layout_.board(), topology_.size());
  if (transport_) transport_->count_moves_in(board.moves(topology_.rank()));
  if (topology_.local_rank() == 0) {
    exchange_ = std::make_unique<LeaderExchange>(topology_, local_->group, board, meet_leaders(offers), spin_);
  }
  HostRounds::Options options{options_.operation_timeout, 0};
  if (!hierarchical_.needs_flat_mesh())
    options.most_data_bytes = most_data_in_round(channels_->costs, topology_.size() - topology_.columns());
  rounds_.emplace(topology_, local_->group, local_->rounds, board, exchange_.get(), options);
  const MutexLock lock(mutex_);
  failure_.throw_if_failed();
  ends_exchange_ = exchange_.get();
}

/// Connects with the leader of every other host.
std::vector<ControlChannel> HierarchicalBackend::meet_leaders(const std::vector<HostOffer>& offers) {
  LinkPlan plan;
  plan.own = topology_.host();
  plan.purpose = "rounds between hosts";
  plan.deadline = std::chrono::steady_clock::now() + options_.connect_timeout;
  plan.cancel = cancel_->get();
  std::vector<rendezvous::Nonce> nonces;
  for (int host = 0; host < topology_.hosts(); ++host) {
    const int leader = topology_.ranks(host).front();
    const std::string name = fmt::format("rank {}", options_.name(leader));
    const LinkAddress address = decode_link_address(offers.at(static_cast<std::size_t>(leader)).leader, name);
    nonces.push_back(address.nonce);
    if (host != plan.own) plan.peers[host] = {address, name};
  }
  plan.encrypts = options_.encrypts;
  plan.key = make_link_key(options_.job_key, "runjob rounds 3: key", nonces);
  std::vector<ControlChannel> channels(static_cast<std::size_t>(topology_.hosts()));
  for (auto& [host, stream] : connect_links(listener_.socket.get(), plan))
    channels[static_cast<std::size_t>(host)] = ControlChannel(std::move(stream));
  listener_ = {};
  return channels;
}

Rounds& HierarchicalBackend::rounds() {
  if (rounds_) return *rounds_;
  return local_->rounds;
}

int HierarchicalBackend::lost_rank() const {
  int lost = transport_ ? transport_->lost_rank() : -1;
  if (lost < 0 && flat_) lost = flat_->lost_rank();
  const MutexLock lock(mutex_);
  return lost < 0 && ends_exchange_ != nullptr ? ends_exchange_->lost_rank() : lost;
}

Status HierarchicalBackend::run(const Call& call) {
  {
    const MutexLock lock(mutex_);
    if (!failure_.ok()) return failure_;
  }
  if (hierarchical_.is_flat(call.kind)) {
    const Status status = flat_->run(call);
    return status.ok() ? status : keep(status);
  }
  try {
    run_between_hosts(call);
    if (transport_) transport_->flush().throw_if_failed();
    return {};
  } catch (const Error& error) {
    return fail(error, to_string(call.kind));
  } catch (const std::exception& error) {
    return fail(Error(Errc::kSystem, error.what()), to_string(call.kind));
  }
}

void HierarchicalBackend::run_between_hosts(const Call& call) {
  switch (call.kind) {
    case Kind::kAllreduce:
      return allreduce(*channels_, call);
    case Kind::kAllgather:
      return allgather(*channels_, call);
    case Kind::kBroadcast:
      return broadcast(*channels_, call);
    case Kind::kAlltoall:
      return alltoall(*channels_, call);
    case Kind::kReducescatter:
      return reducescatter(*channels_, call);
    case Kind::kBarrier:
    case Kind::kJoin:
      return;
  }
}

void HierarchicalBackend::abort(const Status& why) {
  {
    const MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = why;
  }
  end();
}

Status HierarchicalBackend::fail(const Error& error, std::string_view what) {
  return keep(Status(error.code(), fmt::format("between hosts, {}: {}", what, error.what())));
}

/// Returns the first failure, which explains the later ones. After it every call fails, since the ranks' steps no
/// longer agree, and the other ranks end as well: those of this host through shared memory, those of the column when
/// their connections end.
Status HierarchicalBackend::keep(const Status& failure) {
  Status first;
  {
    const MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = failure;
    first = failure_;
  }
  end();
  return first;
}

void HierarchicalBackend::end() {
  Status why;
  {
    const MutexLock lock(mutex_);
    why = failure_;
    if (group_ != nullptr) group_->end();
    if (ends_exchange_ != nullptr) ends_exchange_->close();
  }
  if (cancel_) cancel_->set();
  if (transport_) transport_->abort();
  if (flat_) flat_->abort(why);
}

}  // namespace runjob::runtime
