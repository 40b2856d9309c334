#include "runtime/collectives/hierarchical/exchanges/topology.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace runjob::runtime {

Topology::Topology(int rank, const std::vector<int>& host_of_rank, std::vector<int> names)
    : rank_(rank), names_(std::move(names)) {
  std::map<int, int> numbers;
  for (std::size_t i = 0; i < host_of_rank.size(); ++i) {
    const auto [found, is_new] = numbers.emplace(host_of_rank[i], static_cast<int>(ranks_.size()));
    if (is_new) ranks_.emplace_back();
    std::vector<int>& ranks = ranks_[static_cast<std::size_t>(found->second)];
    host_.push_back(found->second);
    local_rank_.push_back(static_cast<int>(ranks.size()));
    ranks.push_back(static_cast<int>(i));
  }
}

int Topology::columns() const {
  std::size_t least = ranks_.front().size();
  for (const std::vector<int>& ranks : ranks_) least = std::min(least, ranks.size());
  return static_cast<int>(least);
}

std::vector<int> Topology::column(int local_rank) const {
  std::vector<int> column;
  for (const std::vector<int>& ranks : ranks_) column.push_back(ranks.at(static_cast<std::size_t>(local_rank)));
  return column;
}

Cube::Cube(int host_count) : hosts(host_count), size(1) {
  while (2 * size <= hosts) size *= 2;
}

int Cube::companion(int host) const {
  if (!contains(host)) return host - size;
  return host + size < hosts ? host + size : -1;
}

std::vector<int> Cube::neighbours(int host) const {
  std::vector<int> result;
  if (companion(host) >= 0) result.push_back(companion(host));
  for (int distance = 1; contains(host) && distance < size; distance *= 2) result.push_back(host ^ distance);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace runjob::runtime
