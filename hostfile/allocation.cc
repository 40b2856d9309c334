#include "hostfile/allocation.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

/// "4 slots on 2 hosts (a:2, b:2)", long lists cut.
std::string describe(const std::vector<Host>& hosts, std::int64_t slots) {
  constexpr std::size_t kShown = 4;
  std::string list;
  for (std::size_t i = 0; i < std::min(hosts.size(), kShown); ++i)
    list += fmt::format("{}{}:{}", i == 0 ? "" : ", ", hosts[i].name, hosts[i].slots);
  if (hosts.size() > kShown) list += ", ...";
  return fmt::format("{} slot{} on {} host{} ({})", slots, slots == 1 ? "" : "s", hosts.size(),
                     hosts.size() == 1 ? "" : "s", list);
}

/// How many ranks there will be, or an Error.
int count_ranks(const std::vector<Host>& hosts, std::optional<int> np) {
  if (hosts.empty()) throw Error(Errc::kUsage, "there is no host to start ranks on; name at least one");
  const std::int64_t slots = std::accumulate(hosts.begin(), hosts.end(), std::int64_t{0},
                                             [](std::int64_t sum, const Host& host) { return sum + host.slots; });
  const std::int64_t ranks = np ? *np : slots;
  if (ranks < 1) throw Error(Errc::kUsage, fmt::format("{} ranks cannot be started; ask for at least 1", ranks));
  if (ranks > slots)
    throw Error(Errc::kUsage, fmt::format("{} ranks do not fit into {}; ask for at most {} or give more slots", ranks,
                                          describe(hosts, slots), slots));
  if (ranks > kMaxRanks)
    throw Error(Errc::kUsage,
                fmt::format("{} ranks are more than the {} that one job may have; ask for fewer", ranks, kMaxRanks));
  return static_cast<int>(ranks);
}

/// cross_rank and cross_size: by walking the ranks in order, so that hosts are counted in their order.
void number_across_hosts(std::vector<Placement>& placements) {
  std::vector<int> hosts_having;  // this local_rank
  for (Placement& placement : placements) {
    const auto local = static_cast<std::size_t>(placement.local_rank);
    if (local == hosts_having.size()) hosts_having.push_back(0);
    placement.cross_rank = hosts_having[local]++;
  }
  for (Placement& placement : placements)
    placement.cross_size = hosts_having[static_cast<std::size_t>(placement.local_rank)];
}

}  // namespace

Allocation allocate(const std::vector<Host>& hosts, std::optional<int> np) {
  const int size = count_ranks(hosts, np);
  Allocation allocation;
  allocation.placements.reserve(static_cast<std::size_t>(size));
  int rank = 0;
  for (const Host& host : hosts) {
    if (rank == size) break;
    const int local_size = std::min(host.slots, size - rank);
    for (int local_rank = 0; local_rank < local_size; ++local_rank) {
      Placement placement;
      placement.rank = rank++;
      placement.size = size;
      placement.local_rank = local_rank;
      placement.local_size = local_size;
      placement.host = static_cast<int>(allocation.hosts.size());
      allocation.placements.push_back(placement);
    }
    allocation.hosts.push_back(host);
  }
  number_across_hosts(allocation.placements);
  return allocation;
}

}  // namespace runjob
