#include "runtime/collectives/hierarchical/exchanges/tree_reduction.hpp"

#include <memory>
#include <vector>

#include "runtime/collectives/hierarchical/exchanges/host_reduction.hpp"

namespace runjob::runtime {

void tree_reduce(const Topology& topology, const Call& call, std::span<const void* const> inputs, std::size_t count) {
  const HostReduction reduction(call, topology.size());
  if (topology.size() == 2 && topology.hosts() == 2)  // the same bits, without a copy
    return reduction.add(call.output, nullptr, inputs, count, /*is_last=*/true);
  const std::size_t bytes = count * size_of(reduction.wide());
  const int hosts = topology.hosts();
  const auto sums = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(hosts) * bytes);
  const auto sum = [&](int host) { return sums.get() + static_cast<std::size_t>(host) * bytes; };
  std::vector<const void*> of_host;
  for (int host = 0; host < hosts; ++host) {
    of_host.clear();
    for (const int rank : topology.ranks(host)) of_host.push_back(inputs[static_cast<std::size_t>(rank)]);
    reduction.begin(sum(host), of_host, count);
  }
  const Cube cube(hosts);
  for (int host = cube.size; host < hosts; ++host) {
    const int companion = cube.companion(host);
    reduction.join(sum(companion), sum(companion), sum(host), count);
  }
  for (int distance = 1; distance < cube.size; distance *= 2) {
    for (int host = 0; host < cube.size; host += 2 * distance)
      reduction.join(sum(host), sum(host), sum(host + distance), count);
  }
  reduction.finish(call.output, sum(0), count);
}

}  // namespace runjob::runtime
