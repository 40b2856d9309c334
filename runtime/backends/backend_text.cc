#include "runtime/backends/backend_text.hpp"

#include <set>

#include <fmt/format.h>

namespace runjob::runtime {
namespace {

std::size_t count_different(const std::vector<int>& numbers) {
  return std::set<int>(numbers.begin(), numbers.end()).size();
}

std::string reason_for_tcp(const MeshAgreement& agreement, std::size_t hosts, std::size_t ranks) {
  if (hosts == ranks) return "each rank is on a host of its own";
  return agreement.sharing_objection.empty() ? "RUNJOB_SHARED_MEMORY is 0" : agreement.sharing_objection;
}

/// The collectives in which the ranks of a host do not combine their data first.
std::string flat_part(const MeshAgreement& agreement, const BackendSettings& settings) {
  const bool allreduce = agreement.is_flat || !settings.hierarchical_allreduce,
             allgather = agreement.is_flat || !settings.hierarchical_allgather;
  if (!allreduce && !allgather) return {};
  return fmt::format("; {} without regard to hosts, because {}",
                     allreduce && allgather ? "allreduce and allgather" : (allreduce ? "allreduce" : "allgather"),
                     agreement.is_flat ? agreement.settings_objection : "a setting turns the hierarchy off");
}

}  // namespace

std::string backend_text(const MeshAgreement& agreement, const std::vector<int>& hosts,
                         const BackendSettings& settings) {
  const std::size_t size = hosts.size(), groups = count_different(agreement.groups),
                    host_count = count_different(hosts);
  if (size == 1) return "none, because one rank has no other one to exchange data with";
  if (settings.gloo && !agreement.is_flat)
    return fmt::format("Gloo between all {} ranks, because RUNJOB_CPU_OPERATIONS is gloo", size);
  if (groups == 1) return fmt::format("shared memory, because all {} ranks are on one host", size);
  if (groups == size)
    return fmt::format("TCP between all {} ranks, because {}", size, reason_for_tcp(agreement, host_count, size));
  const std::string exception =
      agreement.sharing_objection.empty()
          ? std::string()
          : fmt::format("; some ranks of a host use TCP, because {}", agreement.sharing_objection);
  return fmt::format("shared memory on each host and TCP between the hosts, because the {} ranks are on {} hosts{}{}",
                     size, host_count, exception, flat_part(agreement, settings));
}

}  // namespace runjob::runtime
