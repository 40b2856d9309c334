#include "launcher/supervision/core_notices.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/processes/rank_environment.hpp"

namespace runjob {

std::string threads_notice(const std::vector<HostCores>& hosts) {
  const bool shared =
      std::any_of(hosts.begin(), hosts.end(), [](const HostCores& host) { return host.local_size > 1; });
  if (!shared) return "";
  std::vector<int> threads;
  for (const HostCores& host : hosts) threads.push_back(threads_per_rank(host.usable, host.local_size));
  const auto [low, high] = std::minmax_element(threads.begin(), threads.end());
  return fmt::format(
      "OMP_NUM_THREADS was not set and is {} for each rank now: a host's cores shared among its ranks; "
      "set it to choose",
      *low == *high ? fmt::format("{}", *low) : fmt::format("{} to {}", *low, *high));
}

std::string affinity_notice(const HostCores& host) {
  if (host.local_size <= host.usable || host.usable >= host.online) return "";
  return fmt::format(
      "the {} ranks on {} share {} of its {} cores, all that they may use there (by taskset, a batch "
      "system or a container)",
      host.local_size, host.name, host.usable, host.online);
}

std::string idle_options_notice(const std::vector<std::string>& options) {
  if (options.empty()) return "";
  return fmt::format(
      "no rank called init(), so {} had no effect: {} for programs with runjob's own collectives, and {} not act on "
      "torch.distributed or MPI (docs/ddp.md)",
      fmt::join(options, ", "), options.size() == 1 ? "it is" : "they are", options.size() == 1 ? "does" : "do");
}

std::string lost_input_notice(std::int64_t bytes) {
  return fmt::format(
      "rank 0 has read nothing of its standard input: {} that runjob took for it {} lost; if {} for others, as in a "
      "loop (while read ...), start runjob with --stdin none or with </dev/null",
      bytes == 1 ? "the byte" : fmt::format("the {} bytes", bytes), bytes == 1 ? "is" : "are",
      bytes == 1 ? "it was" : "they were");
}

}  // namespace runjob
