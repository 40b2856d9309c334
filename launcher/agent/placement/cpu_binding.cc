#include "launcher/agent/placement/cpu_binding.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

int unit_of(const Cpu& cpu, BindTo bind_to) {
  switch (bind_to) {
    case BindTo::kNone:
    case BindTo::kGpu:
      return 0;
    case BindTo::kCore:
    case BindTo::kSharedCore:
      return cpu.core;
    case BindTo::kNuma:
      return cpu.numa;
    case BindTo::kSocket:
      return cpu.socket;
  }
  return 0;
}

/// The CPUs of each unit, in the units' order.
std::vector<std::vector<int>> units_of(const std::vector<Cpu>& cpus, BindTo bind_to) {
  std::vector<std::vector<int>> units;
  std::map<int, std::size_t> places;  // a unit's number -> its place
  for (const Cpu& cpu : cpus) {
    const auto [place, is_new] = places.emplace(unit_of(cpu, bind_to), units.size());
    if (is_new) units.emplace_back();
    units[place->second].push_back(cpu.number);
  }
  return units;
}

/// Each rank gets `each` cores: the next ones after those of the rank before it.
std::vector<std::vector<int>> bind_to_cores(const std::vector<std::vector<int>>& cores, bool may_share,
                                            std::size_t ranks, std::size_t each) {
  if (each > cores.size() || (!may_share && ranks * each > cores.size()))
    throw Error(Errc::kUnavailable, fmt::format("{} rank{} cannot have {} core{} each (PE={}): {} may be used; start "
                                                "fewer, or ask for fewer cores",
                                                ranks, ranks == 1 ? "" : "s", each, each == 1 ? "" : "s", each,
                                                cores.size() == 1 ? "one" : fmt::format("{}", cores.size())));
  std::vector<std::vector<int>> result(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = rank * each; i < (rank + 1) * each; ++i) {
      const std::vector<int>& core = cores[i % cores.size()];
      result[rank].insert(result[rank].end(), core.begin(), core.end());
    }
    std::sort(result[rank].begin(), result[rank].end());
  }
  return result;
}

}  // namespace

std::vector<std::vector<int>> bind_ranks(const std::vector<Cpu>& cpus, BindTo bind_to, int ranks, int cores_per_rank) {
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<std::vector<int>> result(count);
  if (bind_to == BindTo::kNone || cpus.empty()) return result;
  const std::vector<std::vector<int>> units = units_of(cpus, bind_to);
  if (cores_per_rank > 0 && (bind_to == BindTo::kCore || bind_to == BindTo::kSharedCore))
    return bind_to_cores(units, bind_to == BindTo::kSharedCore, count, static_cast<std::size_t>(cores_per_rank));
  if (bind_to == BindTo::kCore && units.size() < count)
    throw Error(Errc::kUnavailable,
                fmt::format("{} ranks cannot have a core each: {} may be used; start fewer, or bind to "
                            "none or to core:overload-allowed",
                            count, units.size() == 1 ? "one" : fmt::format("{}", units.size())));
  for (std::size_t rank = 0; rank < count; ++rank) {
    const std::size_t begin = rank * units.size() / count;
    const std::size_t end = std::max(begin + 1, (rank + 1) * units.size() / count);
    for (std::size_t unit = begin; unit < end; ++unit)
      result[rank].insert(result[rank].end(), units[unit].begin(), units[unit].end());
    std::sort(result[rank].begin(), result[rank].end());
  }
  return result;
}

}  // namespace runjob
