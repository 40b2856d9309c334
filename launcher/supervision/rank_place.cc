#include "launcher/supervision/rank_place.hpp"

namespace runjob {

rendezvous::Place rank_place(const Allocation& allocation, const Placement& placement,
                             std::chrono::milliseconds start_timeout) {
  rendezvous::Place place;
  place.rank = placement.rank;
  place.size = placement.size;
  place.local_rank = placement.local_rank;
  place.local_size = placement.local_size;
  place.cross_rank = placement.cross_rank;
  place.cross_size = placement.cross_size;
  place.hostname = allocation.hosts.at(static_cast<std::size_t>(placement.host)).name;
  place.start_timeout_seconds = std::chrono::duration<double>(start_timeout).count();
  return place;
}

rendezvous::Topology topology_of(const Allocation& allocation) {
  rendezvous::Topology topology;
  for (const Placement& each : allocation.placements) topology.hosts.push_back(each.host);
  for (const Host& host : allocation.hosts) topology.hostnames.push_back(host.name);
  return topology;
}

std::vector<rendezvous::Member> members_of(const Allocation& allocation) {
  std::vector<rendezvous::Member> members;
  for (const Placement& placement : allocation.placements) {
    members.push_back({allocation.hosts.at(static_cast<std::size_t>(placement.host)).name});
  }
  return members;
}

}  // namespace runjob
