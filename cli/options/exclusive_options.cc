#include "cli/options/exclusive_options.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

using Group = std::vector<std::string_view>;

/// Source  Horovod 0.28.1, horovod/runner/launch.py: its mutually exclusive groups. settings.cc has the one of hosts.
const std::vector<Group>& groups() {
  static const std::vector<Group> all = {
      {"gloo", "mpi", "jsrun"},
      {"hierarchical-allreduce", "no-hierarchical-allreduce"},
      {"hierarchical-allgather", "no-hierarchical-allgather"},
      {"torus-allreduce", "no-torus-allreduce"},
      {"autotune", "no-autotune"},
      {"timeline-mark-cycles", "no-timeline-mark-cycles"},
      {"no-stall-check", "stall-check"},
      {"mpi-threads-disable", "no-mpi-threads-disable"},
      {"prefix-output-with-timestamp", "log-with-timestamp", "log-hide-timestamp", "no-log-hide-timestamp"},
  };
  return all;
}

bool exclude_each_other(std::string_view one, std::string_view other) {
  if (one == other) return false;
  return std::any_of(groups().begin(), groups().end(), [&](const Group& group) {
    const auto has = [&group](std::string_view name) {
      return std::find(group.begin(), group.end(), name) != group.end();
    };
    return has(one) && has(other);
  });
}

}  // namespace

void ExclusiveOptions::add(std::string_view name, const std::string& typed) {
  const auto conflict = std::find_if(added_.begin(), added_.end(),
                                     [&](const auto& added) { return exclude_each_other(added.first, name); });
  if (conflict != added_.end())
    throw Error(Errc::kUsage, fmt::format("{} and {} exclude each other; give one of them", conflict->second, typed));
  added_.emplace_back(name, typed);
}

}  // namespace runjob
