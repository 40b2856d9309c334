#include "launcher/elastic/elastic_allocation.hpp"

#include <algorithm>

namespace runjob {

std::vector<Host> first_hosts(const Allocation& allocation, const ElasticSettings& settings) {
  std::vector<Host> hosts = allocation.hosts;
  hosts.insert(hosts.end(), settings.more_hosts.begin(), settings.more_hosts.end());
  return hosts;
}

Allocation elastic_allocation(const std::vector<Host>& hosts, const std::vector<Membership::Member>& members,
                              std::vector<int>& job_hosts) {
  Allocation allocation;
  job_hosts.clear();
  for (const Membership::Member& member : members) {
    auto found = std::find(job_hosts.begin(), job_hosts.end(), member.host);
    if (found == job_hosts.end()) {
      found = job_hosts.insert(job_hosts.end(), member.host);
      allocation.hosts.push_back(hosts.at(static_cast<std::size_t>(member.host)));
    }
    Placement& placement = allocation.placements.emplace_back();
    placement.rank = static_cast<int>(allocation.placements.size()) - 1;
    placement.size = static_cast<int>(members.size());
    placement.local_rank = member.local_rank;
    placement.host = static_cast<int>(found - job_hosts.begin());
  }
  for (Placement& placement : allocation.placements) {
    placement.local_size = placement.cross_size = 0;
    for (const Placement& other : allocation.placements) {
      if (other.host == placement.host) ++placement.local_size;
      if (other.local_rank != placement.local_rank) continue;
      ++placement.cross_size;
      if (other.host < placement.host) ++placement.cross_rank;
    }
  }
  return allocation;
}

}  // namespace runjob
