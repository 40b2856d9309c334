#include "runtime/backends/mesh_agreement.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "runtime/collectives/hierarchical/exchanges/topology.hpp"
#include "runtime/collectives/hierarchical/host_offer.hpp"
#include "runtime/collectives/shm/memory/sharing.hpp"

namespace runjob::runtime {
namespace {

/// The part of an address that is about shared memory; "" when the rank does not ask for it.
std::string sharing_of(const std::string& address, int rank) {
  return is_host_offer(address) ? decode_host_offer(address, rank).sharing : address;
}

/// 0, 1, 2... As groups: every rank in one of its own.
std::vector<int> numbers_to(std::size_t size) {
  std::vector<int> numbers(size);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

bool are_alike(const std::vector<int>& groups, const std::vector<int>& others) {
  const Topology one(0, groups), other(0, others);
  if (one.hosts() != other.hosts()) return false;
  for (int rank = 0; rank < one.size(); ++rank) {
    if (one.host_of(rank) != other.host_of(rank)) return false;
  }
  return true;
}

/// Separates the ranks of each host that cannot share memory.
void agree_on_groups(const std::vector<std::string>& sharing, const std::vector<int>& hosts,
                     const std::vector<int>& names, MeshAgreement& agreement) {
  const Topology topology(0, hosts);
  const int size = topology.size();
  for (int rank = 0; rank < size; ++rank) agreement.groups.push_back(topology.host_of(rank));
  for (int host = 0; host < topology.hosts(); ++host) {
    const std::vector<int>& ranks = topology.ranks(host);
    if (ranks.size() == 1) continue;
    std::vector<std::string> offers;
    std::vector<int> names_here;
    for (const int rank : ranks) {
      offers.push_back(sharing[static_cast<std::size_t>(rank)]);
      names_here.push_back(names[static_cast<std::size_t>(rank)]);
    }
    const auto objection = objection_to_sharing(offers, names_here);
    if (!objection) continue;
    for (const int rank : ranks) agreement.groups[static_cast<std::size_t>(rank)] = size + rank;
    const bool is_asked_for = std::any_of(offers.begin(), offers.end(), is_sharing_offer);
    if (is_asked_for && agreement.sharing_objection.empty()) agreement.sharing_objection = *objection;
  }
}

/// Every collective is flat when the settings of two ranks differ: that works with all of them.
void agree_on_settings(const std::vector<std::string>& addresses, const std::vector<int>& names,
                       MeshAgreement& agreement) {
  std::optional<std::string> first;
  int first_rank = 0;
  for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
    if (!is_host_offer(addresses[rank])) continue;
    const std::string settings = decode_host_offer(addresses[rank], names[rank]).settings;
    if (!first) {
      first = settings;
      first_rank = names[rank];
    }
    if (settings == *first) continue;
    agreement.is_flat = true;
    agreement.settings_objection =
        fmt::format("rank {} has '{}', but rank {} '{}'", names[rank], settings, first_rank, *first);
    return;
  }
}

}  // namespace

MeshAgreement agree_on_mesh(const std::vector<std::string>& addresses, const std::vector<int>& hosts,
                            const std::vector<int>& given_names) {
  const std::vector<int> names = given_names.empty() ? numbers_to(addresses.size()) : given_names;
  MeshAgreement agreement;
  std::vector<std::string> sharing;
  for (std::size_t rank = 0; rank < addresses.size(); ++rank)
    sharing.push_back(sharing_of(addresses[rank], names[rank]));
  agree_on_groups(sharing, hosts, names, agreement);
  agree_on_settings(addresses, names, agreement);
  agreement.is_as_prepared = !agreement.is_flat && std::all_of(sharing.begin(), sharing.end(), [&](const auto& offer) {
    return are_alike(agreement.groups, is_sharing_offer(offer) ? hosts : numbers_to(hosts.size()));
  });
  return agreement;
}

}  // namespace runjob::runtime
