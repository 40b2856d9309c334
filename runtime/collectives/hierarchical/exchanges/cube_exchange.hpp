#pragma once

#include <functional>
#include <vector>

#include "runtime/collectives/hierarchical/exchanges/host_reduction.hpp"
#include "runtime/collectives/hierarchical/exchanges/topology.hpp"
#include "runtime/collectives/shm/memory/pieces.hpp"
#include "runtime/collectives/transport.hpp"

/// Short messages among the leaders of the hosts, along the edges of a Cube: in as many steps as the logarithm of the
/// number of hosts, and two more when that number is no power of two.
/// Source  Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19
///         (2005).
/// Errors  the transport's status, thrown as Error.
namespace runjob::runtime {

/// The host of a leader, and its transport.
struct CubeMember {
  Transport& transport;
  int host, hosts;
};

/// Adds `count` elements in `reduction.wide()`, at most Transport::kMostShortBytes, with the same bits on all hosts.
/// `room`: memory for as many bytes again.
void cube_allreduce(const CubeMember& member, void* sum, void* room, std::size_t count, const HostReduction& reduction);

/// Gives all hosts `root`'s bytes, at most Transport::kMostShortBytes.
void cube_broadcast(const CubeMember& member, int root, void* data, std::size_t bytes);

/// Gives all hosts each host's `parts`, which are ranges of `data` in bytes; together at most
/// Transport::kMostShortBytes. `room`: memory for as many bytes.
void cube_allgather(const CubeMember& member, const std::vector<std::vector<Range>>& parts, std::byte* data,
                    std::byte* room);

}  // namespace runjob::runtime
