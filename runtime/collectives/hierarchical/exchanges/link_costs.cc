#include "runtime/collectives/hierarchical/exchanges/link_costs.hpp"

#include <algorithm>
#include <cstdint>

#include "runtime/collectives/hierarchical/exchanges/topology.hpp"

namespace runjob::runtime {
namespace {

int steps_of(const Cube& cube) {
  int steps = 0;
  for (int distance = 1; distance < cube.size; distance *= 2) ++steps;
  return steps;
}

/// The messages before and after the steps, when some hosts are beyond the cube.
int folds_of(const Cube& cube) {
  return cube.size < cube.hosts ? 2 : 0;
}

}  // namespace

double doubling_seconds(const LinkCosts& costs, int hosts, std::size_t bytes) {
  const Cube cube(hosts);
  return (steps_of(cube) + folds_of(cube)) *
         (costs.short_seconds + static_cast<double>(bytes) / costs.bytes_per_second);
}

double halving_seconds(const LinkCosts& costs, int hosts, std::size_t bytes) {
  const Cube cube(hosts);
  const auto n = static_cast<double>(bytes);
  const double on_wire = 2.0 * (cube.size - 1) / cube.size * n + folds_of(cube) * n;
  // The three stages within a host do not overlap: in, out, and the sums.
  return (2 * steps_of(cube) + folds_of(cube)) * costs.long_seconds + on_wire / costs.bytes_per_second +
         3 * n / costs.copied_per_second;
}

std::size_t most_data_in_round(const LinkCosts& costs, int received) {
  /// A collective's own messages take about so much longer than those of a round. Measured: measurements.md.
  constexpr double kSecondsOfMessages = 60e-6;
  if (received <= 1) return SIZE_MAX;
  return static_cast<std::size_t>(costs.bytes_per_second * kSecondsOfMessages / (received - 1));
}

bool exchanges_directly(bool are_all_alone, int hosts, std::size_t bytes, std::size_t most_short) {
  return are_all_alone && hosts == 2 && bytes > most_short;
}

AllreduceWay choose_allreduce(const LinkCosts& costs, int hosts, std::size_t bytes, std::size_t wide_bytes,
                              std::size_t most_short) {
  /// The shortest message of a ring. Shorter ones cost more than their bytes, and a ring has more messages than the
  /// other algorithms have steps.
  constexpr std::size_t kLeastChunk = 32u << 10;
  if (bytes >= static_cast<std::size_t>(hosts) * kLeastChunk) return AllreduceWay::kRing;
  if (bytes > most_short) return AllreduceWay::kHalving;
  return doubling_seconds(costs, hosts, wide_bytes) <= halving_seconds(costs, hosts, wide_bytes)
             ? AllreduceWay::kDoubling
             : AllreduceWay::kHalving;
}

}  // namespace runjob::runtime
