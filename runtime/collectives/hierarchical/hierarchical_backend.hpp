#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"
#include "runtime/collectives/hierarchical/host_memory.hpp"
#include "runtime/collectives/hierarchical/host_offer.hpp"
#include "runtime/collectives/hierarchical/rounds/host_rounds.hpp"
#include "runtime/links/listener.hpp"

namespace runjob::runtime {

struct HierarchicalOptions {
  /// These operations use the groups' leaders and columns. The others treat all ranks alike, wherever they are. When
  /// both are false, all operations treat all ranks alike.
  bool allreduce = true, allgather = true;
  bool rounds = true;             ///< the ranks also negotiate; false for the flat mesh of another backend
  std::string flat_name = "TCP";  ///< the name of HostParts::make_flat in messages; the same on all ranks

  bool is_flat(Kind kind) const;
  bool is_always_flat() const { return !allreduce && !allgather; }
  bool needs_flat_mesh() const { return !allreduce || !allgather; }
};

/// The functions with which a HierarchicalBackend makes what lies in other modules. Both throw Error(kUnavailable).
struct HostParts {
  std::function<std::unique_ptr<Transport>(const TransportOptions&)> make_transport;
  /// A mesh of all ranks. Not called when the options need none.
  std::function<std::unique_ptr<DataBackend>(const MeshOptions&)> make_flat;
};

/// Collectives of a job on several hosts: shared memory within each host, and transports between hosts, one for each
/// column of ranks that reaches all hosts. The options can send collectives through a flat mesh of all ranks instead.
/// connect() also measures the links.
///
/// Groups   Ranks of one host that do not share memory are groups of one rank each, between which everything is as
///          between hosts. "Host" in this folder means such a group, except for processors, which the ranks of a real
///          host share. A rank that cannot share memory announces this in its address. All ranks call agree_on_mesh();
///          when these groups are not those that all ranks can use, no rank calls connect().
/// Owner    a copy of the options; the backend owns its transports, its mesh and its memory.
/// Threads  those of Backend: abort() and lost_rank() any, the rest one at a time.
/// Errors   a failure ends the calls of the ranks that wait for the failed one, in memory or over the network, and then
///          the calls of those that wait for them. A rank that waits for another column is ended by its own abort(),
///          which the engine calls on every rank.
class HierarchicalBackend : public Backend {
 public:
  /// `socket_directory`: see Handover.
  /// Errors  those of `parts`.
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
  TransportOptions transport_options() const;
  void check_settings(const std::vector<HostOffer>& offers) const;
  void meet_host(const std::vector<HostOffer>& offers);
  void meet_others(const std::vector<HostOffer>& offers);
  std::vector<int> local_names() const;
  void make_rounds(const std::vector<HostOffer>& offers);
  std::vector<ControlChannel> meet_leaders(const std::vector<HostOffer>& offers);
  std::vector<std::string> processors_of_host(const std::vector<HostOffer>& offers) const;
  void run_between_hosts(const Call& call);
  Status fail(const Error& error, std::string_view what);
  Status keep(const Status& failure);
  void end();

  const MeshOptions options_;
  const HierarchicalOptions hierarchical_;
  const Topology topology_;  ///< of the groups
  const Topology machines_;  ///< of the hosts: equal to topology_ when the ranks of each host share memory
  const Layout layout_;
  HostMemory memory_;
  std::unique_ptr<Transport> transport_;  ///< null for a rank of no complete column, and when every collective is flat
  std::unique_ptr<DataBackend> flat_;     ///< null when nothing uses it
  Listener listener_;                     ///< a leader's, for other leaders
  std::optional<EventFd> cancel_;         ///< connect() is to end
  std::string address_;
  double processors_ = 0;              ///< of this host, for its ranks
  std::chrono::microseconds spin_{0};  ///< the longest time for which this rank spins for another host's message
  std::unique_ptr<Channels> local_;    ///< run()'s, but for what abort() does with the group
  std::unique_ptr<HostChannels> channels_;
  std::unique_ptr<LeaderExchange> exchange_;  ///< null for a rank that is no leader
  std::optional<HostRounds> rounds_;

  mutable Mutex mutex_;
  Status failure_ GUARDED_BY(mutex_);
  Group* group_ GUARDED_BY(mutex_) = nullptr;                   ///< of local_, once there is one
  LeaderExchange* ends_exchange_ GUARDED_BY(mutex_) = nullptr;  ///< exchange_, once there is one
};

}  // namespace runjob::runtime
