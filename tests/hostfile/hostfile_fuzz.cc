/// Feeds any bytes to the host grammars and to allocate(), and checks what must hold for every result.
/// The first byte chooses the grammar, so that one corpus serves all.
#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "hostfile/allocation.hpp"
#include "hostfile/grid_engine_allocation.hpp"
#include "hostfile/local_host.hpp"
#include "hostfile/lsf_allocation.hpp"
#include "hostfile/merge_hosts.hpp"
#include "hostfile/parse_hosts.hpp"
#include "hostfile/pbs_allocation.hpp"
#include "hostfile/slurm_allocation.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;

namespace {

void check_host(const Host& host) {
  require(!host.name.empty() && host.name.size() <= 253 && host.name.front() != '-');
  require(host.slots >= 1 && host.slots <= kMaxSlots);
  require(!host.port || (*host.port >= 1 && *host.port <= 65'535));
  require(host.user.empty() || host.user.front() != '-');
  require(!host.gpus || !host.gpus->empty());
  static_cast<void>(is_this_host(host, "node1"));
}

void check_allocation(const std::vector<Host>& hosts) {
  const Allocation allocation = allocate(hosts, std::nullopt);
  require(allocation.hosts.size() == hosts.size());
  for (std::size_t r = 0; r < allocation.placements.size(); ++r) {
    const Placement& placement = allocation.placements[r];
    require(placement.rank == static_cast<int>(r));
    require(placement.local_rank < placement.local_size && placement.cross_rank < placement.cross_size);
    require(placement.local_size == hosts[static_cast<std::size_t>(placement.host)].slots);
  }
}

void parse_hosts_of_user(std::string_view text, bool is_list) {
  const std::vector<Host> hosts = is_list ? parse_host_list(text) : parse_hostfile(text, "f");
  require(!hosts.empty() && hosts.size() <= 100'000);
  for (const Host& host : hosts) check_host(host);
  if (hosts.size() <= 64) check_allocation(hosts);
}

/// The lists of other batch systems: a file with slots by line, one with columns, and a variable.
void parse_batch(char system, std::string_view text) {
  const std::vector<Host> hosts = system == 'p'   ? parse_pbs_nodes(text, "f")
                                  : system == 'g' ? parse_grid_engine_hosts(text, "f")
                                                  : parse_lsf_hosts(text, "f");
  require(!hosts.empty() && hosts.size() <= 100'000);
  for (const Host& host : hosts) check_host(host);
}

/// A host list, or as many lines of variables: NODELIST, TASKS_PER_NODE, JOB_CPUS_PER_NODE, STEP_ID.
void parse_slurm(std::string_view text) {
  Environment environment = {{"SLURM_JOB_ID", "1"}};
  for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE", "SLURM_STEP_ID"}) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    environment[name] = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto allocation = read_slurm_allocation(environment);
  if (!allocation) return;
  require(!allocation->hosts.empty() && allocation->hosts.size() <= 100'000);
  for (const Host& host : allocation->hosts) check_host(host);
}

}  // namespace

void fuzz(std::string_view input) {
  if (input.empty()) return;
  const std::string_view text = input.substr(1);
  try {
    if (input[0] == 's') {
      parse_slurm(text);
    } else if (input[0] == 'p' || input[0] == 'g' || input[0] == 'l') {
      parse_batch(input[0], text);
    } else {
      parse_hosts_of_user(text, static_cast<unsigned char>(input[0]) % 2 == 0);
    }
  } catch (const Error& error) {
    require(error.code() == Errc::kHostfile || error.code() == Errc::kUsage);
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}
