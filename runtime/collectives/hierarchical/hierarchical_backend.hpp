#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"
#include "runtime/collectives/hierarchical/host_offer.hpp"
#include "runtime/collectives/hierarchical/rounds/host_rounds.hpp"
#include "runtime/collectives/shm/memory/handover.hpp"
#include "runtime/collectives/shm/memory/segment.hpp"
#include "runtime/control/wait_limits.hpp"
#include "runtime/links/listener.hpp"

namespace runjob::runtime {

struct HierarchicalOptions {
  /// These operations use the groups' leaders and columns. The others treat all ranks alike, wherever they are. When
  /// both are false, all operations do.
  bool allreduce = true, allgather = true;
  bool rounds = true;             ///< the ranks also negotiate; false for the flat mesh of another backend
  std::string flat_name = "TCP";  ///< the name of HostParts::make_flat in messages; the same on all ranks
};

/// How a HierarchicalBackend gets what lies in other modules. Both throw Error(kUnavailable).
struct HostParts {
  std::function<std::unique_ptr<Transport>(const TransportOptions&)> make_transport;
  /// A mesh of all ranks. Not called when the options need none.
  std::function<std::unique_ptr<DataBackend>(const MeshOptions&)> make_flat;
};

/// Bytes of malloc()'s.
using PrivateMemory = std::unique_ptr<void, decltype(&std::free)>;

/// Collectives of a job on several hosts: shared memory within each, a transport between the hosts' leaders, and one for each
/// column whose ranks are on all hosts. A host's leader makes its segment and hands it to the others in connect(), which
/// also measures the links. Collectives for which the options say so go through a flat mesh of all ranks instead.
///
/// Groups  Ranks of one host that do not share memory are groups of one rank each, between which everything is as between
///         hosts: "host" in this folder means such a group, but for the processors, which the ranks of a real host share.
/// A failure ends the calls of those who wait for that rank, in memory or over the network, and so on; a rank that waits for
/// another column's is ended by its own abort(), which the engine calls on every rank.
/// A rank that cannot share memory announces so in its address: all ranks call agree_on_mesh(), and when these groups are
/// not those that all ranks can use, nobody calls connect().
class HierarchicalBackend : public Backend {
 public:
  /// `socket_directory`: see Handover. Errors  what `parts` throw.
  HierarchicalBackend(const MeshOptions& options, const std::string& socket_directory, HostParts parts,
                      HierarchicalOptions hierarchical = {});
  ~HierarchicalBackend() override;

  std::string address() const override { return address_; }
  Status connect(const std::vector<std::string>& addresses) override;
  Status run(const Call& call) override;
  FusionAdvice fusion_advice() const override { return kNetworkFusion; }
  void abort(const Status& why) override;
  Rounds& rounds() override;
  int lost_rank() const override;

  /// The measured costs of the links, the same on all ranks. After connect(), unless every collective is flat.
  const LinkCosts& costs() const { return channels_->costs; }

 private:
  std::string offer_sharing(const std::string& socket_directory);
  TransportOptions transport_options() const;
  std::chrono::microseconds spin() const;
  void check_settings(const std::vector<HostOffer>& offers) const;
  void meet_host(const std::vector<HostOffer>& offers);
  void meet_others(const std::vector<HostOffer>& offers);
  std::vector<int> local_names() const;
  void make_rounds(const std::vector<HostOffer>& offers);
  std::vector<ControlChannel> meet_leaders(const std::vector<HostOffer>& offers);
  void* memory_of_host(const HostOffer& of_leader);
  double processors_of_host(const std::vector<HostOffer>& offers) const;
  bool is_flat(Kind kind) const;
  bool has_flat_mesh() const { return !hierarchical_.allreduce || !hierarchical_.allgather; }
  bool is_flat_always() const { return !hierarchical_.allreduce && !hierarchical_.allgather; }
  void run_between_hosts(const Call& call);
  Status fail(const Error& error, std::string_view what);
  Status keep(const Status& failure);
  void end();

  const MeshOptions options_;
  const HierarchicalOptions hierarchical_;
  const Topology topology_;  ///< of the groups
  const Topology machines_;  ///< of the hosts: equal to topology_ when the ranks of each host share memory
  const Layout layout_;
  std::unique_ptr<Transport> transport_;  ///< null for a rank of no complete column, and when every collective is flat
  std::unique_ptr<DataBackend> flat_;     ///< null when nothing uses it
  std::unique_ptr<Handover> handover_;    ///< the leader's, until all have come
  Listener listener_;                     ///< a leader's, for other leaders
  std::optional<EventFd> cancel_;         ///< connect() is to end
  std::string address_;
  Segment segment_;
  PrivateMemory alone_{nullptr, std::free};  ///< in place of the segment on a host with one rank
  double processors_ = 0;                    ///< of this host, for its ranks
  std::unique_ptr<Channels> local_;          ///< run()'s, but for what abort() does with the group
  std::unique_ptr<HostChannels> channels_;
  std::unique_ptr<LeaderExchange> exchange_;  ///< null for a rank that is no leader
  std::optional<HostRounds> rounds_;

  mutable Mutex mutex_;
  Status failure_ GUARDED_BY(mutex_);
  Group* group_ GUARDED_BY(mutex_) = nullptr;                   ///< of local_, once there is one
  LeaderExchange* ends_exchange_ GUARDED_BY(mutex_) = nullptr;  ///< exchange_, once there is one
};

}  // namespace runjob::runtime
