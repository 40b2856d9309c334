#include "hostfile/allocation.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"

namespace runjob {
namespace {

/// "4 slots on 2 hosts (a:2, b:2)"; a long list is cut.
std::string describe(const std::vector<Host>& hosts, std::int64_t slots) {
  constexpr std::size_t kShown = 4;
  std::string list;
  for (std::size_t i = 0; i < std::min(hosts.size(), kShown); ++i)
    list += fmt::format("{}{}:{}", i == 0 ? "" : ", ", hosts[i].name, hosts[i].slots);
  if (hosts.size() > kShown) list += ", ...";
  return fmt::format("{} slot{} on {} host{} ({})", slots, slots == 1 ? "" : "s", hosts.size(),
                     hosts.size() == 1 ? "" : "s", list);
}

/// Adds the slots that `np` ranks need beyond those of `hosts`.
void add_missing_slots(std::vector<Host>& hosts, std::optional<int> np, MapBy map_by) {
  std::int64_t missing = np.value_or(0);
  for (const Host& host : hosts) missing -= host.slots;
  const auto count = static_cast<std::int64_t>(hosts.size());
  for (std::int64_t i = 0; i < count; ++i) {
    Host& host = hosts[static_cast<std::size_t>(i)];
    if (map_by.policy == MapBy::Policy::kPerNode) {
      host.slots = std::max(host.slots, map_by.ranks_per_node);
    } else if (missing > 0 && missing <= kMaxRanks) {
      host.slots += static_cast<int>(missing / count + (i < missing % count ? 1 : 0));
    }
  }
}

/// Reads one of Open MPI's modifiers of a policy into `map_by`. Returns false if `word` is none.
bool take_modifier(std::string_view word, std::string_view what, MapBy& map_by) {
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::string_view kCores = "pe=";
  if (lower.starts_with(kCores)) {
    map_by.cores_per_rank = static_cast<int>(parse_integer(word.substr(kCores.size()), what, 1, kMaxRanks));
    return true;
  }
  if (lower != "oversubscribe" && lower != "nooversubscribe") return false;
  map_by.oversubscribe = lower == "oversubscribe";
  return true;
}

/// The number of ranks that each host may get.
std::vector<int> places_on(const std::vector<Host>& hosts, MapBy map_by) {
  std::vector<int> places;
  for (const Host& host : hosts) {
    if (map_by.policy != MapBy::Policy::kPerNode) {
      places.push_back(host.slots);
      continue;
    }
    if (host.slots < map_by.ranks_per_node)
      throw Error(Errc::kUsage, fmt::format("{} ranks do not fit into the {} slot{} of {}; give it more, as in {}:{}",
                                            map_by.ranks_per_node, host.slots, host.slots == 1 ? "" : "s", host.name,
                                            host.name, map_by.ranks_per_node));
    places.push_back(map_by.ranks_per_node);
  }
  return places;
}

/// How to write one host with `ranks` slots. An IPv6 address would need brackets, and has no example.
std::string example_of_slots(const std::vector<Host>& hosts, std::int64_t ranks) {
  const bool is_plain = hosts.size() == 1 && hosts[0].name.find(':') == std::string::npos;
  return is_plain ? fmt::format(", as in {}:{}", hosts[0].name, ranks) : "";
}

/// The number of ranks of the job.
/// Errors  as allocate().
int count_ranks(const std::vector<Host>& hosts, const std::vector<int>& places, std::optional<int> np, MapBy map_by) {
  if (hosts.empty()) throw Error(Errc::kUsage, "there is no host to start ranks on; name at least one");
  const std::int64_t most = std::accumulate(places.begin(), places.end(), std::int64_t{0});
  const std::int64_t ranks = np ? *np : most;
  if (ranks < 1) throw Error(Errc::kUsage, fmt::format("{} ranks cannot be started; ask for at least 1", ranks));
  if (ranks > most && map_by.policy == MapBy::Policy::kPerNode)
    throw Error(Errc::kUsage, fmt::format("{} ranks do not fit on {} host{} with {} each; ask for at most {}", ranks,
                                          hosts.size(), hosts.size() == 1 ? "" : "s", map_by.ranks_per_node, most));
  if (ranks > most)
    throw Error(Errc::kUsage, fmt::format("{} ranks do not fit into {}; ask for at most {} or give more slots{}", ranks,
                                          describe(hosts, most), most, example_of_slots(hosts, ranks)));
  if (ranks > kMaxRanks)
    throw Error(Errc::kUsage,
                fmt::format("{} ranks are more than the {} that one job may have; ask for fewer", ranks, kMaxRanks));
  return static_cast<int>(ranks);
}

/// For each rank the index of its host: one host's places after the other's.
std::vector<int> by_slot(const std::vector<int>& places, int size) {
  std::vector<int> hosts;
  hosts.reserve(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const int count = std::min(places[i], size - static_cast<int>(hosts.size()));
    hosts.insert(hosts.end(), static_cast<std::size_t>(count), static_cast<int>(i));
  }
  return hosts;
}

/// The same: a place on each host in turn.
std::vector<int> by_node(const std::vector<int>& places, int size) {
  std::vector<int> hosts;
  hosts.reserve(static_cast<std::size_t>(size));
  std::vector<int> open(places.size());  // hosts that have a place left
  std::iota(open.begin(), open.end(), 0);
  for (int turn = 1; static_cast<int>(hosts.size()) < size; ++turn) {
    const auto count = std::min(open.size(), static_cast<std::size_t>(size) - hosts.size());
    hosts.insert(hosts.end(), open.begin(), open.begin() + static_cast<std::ptrdiff_t>(count));
    std::erase_if(open, [&](int host) { return places[static_cast<std::size_t>(host)] <= turn; });
  }
  return hosts;
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

MapBy parse_map_by(std::string_view text, std::string_view what) {
  MapBy map_by;
  std::string_view policy = text;
  for (std::size_t end = policy.find_last_of(":,"); end != std::string_view::npos; end = policy.find_last_of(":,")) {
    if (!take_modifier(policy.substr(end + 1), what, map_by)) break;
    policy = policy.substr(0, end);
  }
  if (policy == "slot") return map_by;
  constexpr std::string_view kBefore = "ppr:";
  constexpr std::string_view kAfter = ":node";
  if (policy == "node") {
    map_by.policy = MapBy::Policy::kNode;
    return map_by;
  }
  if (!policy.starts_with(kBefore) || !policy.ends_with(kAfter) || policy.size() <= kBefore.size() + kAfter.size())
    throw Error(
        Errc::kUsage,
        fmt::format("{}: '{}' is not slot, node or ppr:N:node, which choose a rank's host; --bind-to core, numa "
                    "or socket chooses its place there",
                    what, text));
  const std::string_view number = policy.substr(kBefore.size(), policy.size() - kBefore.size() - kAfter.size());
  map_by.policy = MapBy::Policy::kPerNode;
  map_by.ranks_per_node = static_cast<int>(parse_integer(number, what, 1, kMaxRanks));
  return map_by;
}

Allocation place_ranks(const std::vector<Host>& hosts, const std::vector<int>& host_of_rank) {
  std::vector<int> local_sizes(hosts.size(), 0);
  for (const int host : host_of_rank) ++local_sizes.at(static_cast<std::size_t>(host));
  Allocation allocation;
  std::vector<int> index(hosts.size(), -1);  // in the allocation
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (local_sizes[i] == 0) continue;
    index[i] = static_cast<int>(allocation.hosts.size());
    allocation.hosts.push_back(hosts[i]);
  }
  std::vector<int> placed(hosts.size(), 0);
  const int size = static_cast<int>(host_of_rank.size());
  allocation.placements.reserve(host_of_rank.size());
  for (int rank = 0; rank < size; ++rank) {
    const auto host = static_cast<std::size_t>(host_of_rank[static_cast<std::size_t>(rank)]);
    Placement placement;
    placement.rank = rank;
    placement.size = size;
    placement.local_rank = placed[host]++;
    placement.local_size = local_sizes[host];
    placement.host = index[host];
    allocation.placements.push_back(placement);
  }
  number_across_hosts(allocation.placements);
  return allocation;
}

int count_slots(const std::vector<Host>& hosts) {
  int slots = 0;
  for (const Host& host : hosts) slots += host.slots;
  return slots;
}

Allocation allocate(std::vector<Host> hosts, std::optional<int> np, MapBy map_by) {
  if (map_by.oversubscribe) add_missing_slots(hosts, np, map_by);
  const std::vector<int> places = places_on(hosts, map_by);
  const int size = count_ranks(hosts, places, np, map_by);
  return place_ranks(hosts, map_by.policy == MapBy::Policy::kNode ? by_node(places, size) : by_slot(places, size));
}

}  // namespace runjob
