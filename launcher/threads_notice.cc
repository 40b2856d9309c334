#include "launcher/threads_notice.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "launcher/rank_environment.hpp"

namespace runjob {

std::string threads_notice(const std::vector<HostThreads>& hosts) {
  const bool shared =
      std::any_of(hosts.begin(), hosts.end(), [](const HostThreads& host) { return host.local_size > 1; });
  if (!shared) return "";
  std::vector<int> threads;
  for (const HostThreads& host : hosts) threads.push_back(threads_per_rank(host.cores, host.local_size));
  const auto [low, high] = std::minmax_element(threads.begin(), threads.end());
  return fmt::format(
      "OMP_NUM_THREADS was not set and is {} for each rank now: a host's cores shared among its ranks; "
      "set it to choose",
      *low == *high ? fmt::format("{}", *low) : fmt::format("{} to {}", *low, *high));
}

}  // namespace runjob
