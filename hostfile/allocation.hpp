#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace runjob {

/// One host of a job and how to reach it. A host is identified by its index in the Allocation, never by its
/// name.
struct Host {
  std::string name;                      ///< as the user wrote it, without brackets: "s1", "10.0.0.1", "fe80::1"
  int slots = 1;                         ///< places for ranks on it, at least 1
  std::string user;                      ///< "" = the default
  std::optional<int> port;               ///< SSH port, 1 to 65535
  std::string identity;                  ///< SSH identity file, "" = the default
  std::optional<std::vector<int>> gpus;  ///< the GPUs that ranks may use, in this order

  bool operator==(const Host&) const = default;
};

int count_slots(const std::vector<Host>& hosts);

/// Where one rank sits, in Horovod's terms.
struct Placement {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< index among this host's ranks
  int local_size = 1;
  int cross_rank = 0;  ///< index of this host among the hosts that have this local_rank
  int cross_size = 1;
  int host = 0;  ///< index into Allocation::hosts

  bool operator==(const Placement&) const = default;
};

/// Hosts with the ranks on them: the result of slots -> ranks. `placements[r].rank == r`.
struct Allocation {
  std::vector<Host> hosts;  ///< only hosts that have at least one rank
  std::vector<Placement> placements;

  bool operator==(const Allocation&) const = default;
};

/// The order in which ranks are placed on hosts.
struct MapBy {
  enum class Policy {
    kSlot,    ///< a host's slots are filled before the next host's
    kNode,    ///< one rank on each host in turn, as long as it has slots
    kPerNode  ///< as many ranks on each host, then the next one
  };
  Policy policy = Policy::kSlot;
  int ranks_per_node = 0;      ///< of kPerNode
  bool oversubscribe = false;  ///< hosts get as many more slots as the ranks need
  int cores_per_rank = 0;      ///< Open MPI's PE=N; 0 if not given. It does not change which host a rank gets.

  bool operator==(const MapBy&) const = default;
};

/// Parses Open MPI's words: "slot", "node", "ppr:N:node", each with the modifiers ":OVERSUBSCRIBE", ":NOOVERSUBSCRIBE"
/// and ":PE=N" in any case.
/// Errors  Error(kUsage) naming `what`.
MapBy parse_map_by(std::string_view text, std::string_view what);

inline constexpr int kMaxRanks = 1'000'000;  ///< in one job

/// Places `np` ranks on `hosts` by the policy `map_by`; without `np` every slot is filled, or every host has its
/// ranks_per_node. Hosts that get no rank are left out. A host that occurs twice counts as two hosts; the parsers merge
/// such hosts. local_size counts the ranks that the host gets, not its slots. With `map_by.oversubscribe`, missing
/// slots are added: the same number to each host, and one more to the first ones.
/// Errors  kUsage when `np` < 1, when there are fewer slots than ranks (names both numbers), when a host has
///         fewer slots than ranks_per_node, when there are more than kMaxRanks ranks, or when there is no host.
Allocation allocate(std::vector<Host> hosts, std::optional<int> np, MapBy map_by = {});

/// The ranks on hosts that somebody else has chosen: for each rank the index of its host in `hosts`. Hosts without a
/// rank are left out.
Allocation place_ranks(const std::vector<Host>& hosts, const std::vector<int>& host_of_rank);

}  // namespace runjob
