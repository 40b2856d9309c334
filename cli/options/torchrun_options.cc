#include "cli/options/torchrun_options.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace runjob {
namespace {

struct Counterpart {
  std::string_view name;  // without dashes, words joined by '-'
  std::string_view hint;
};

constexpr std::string_view kHosts = "start runjob once, on one host, with -H a:4,b:4: it starts the ranks of all hosts";
constexpr std::string_view kAddress = "leave it out: runjob sets MASTER_ADDR and MASTER_PORT for the ranks";
constexpr std::string_view kRendezvous = "leave it out: runjob connects the ranks by itself";
constexpr std::string_view kRestarts = "leave it out: runjob ends the job when a rank fails, unless it has --min-np";

constexpr Counterpart kCounterparts[] = {
    {"nproc-per-node", "write -np N, the number of ranks in all, or -H a:4,b:4 for the ranks of each host"},
    {"nnodes", kHosts},
    {"node-rank", kHosts},
    {"master-addr", kAddress},
    {"master-port", kAddress},
    {"local-addr", "write --network-interfaces LIST"},
    {"rdzv-endpoint", kRendezvous},
    {"rdzv-backend", kRendezvous},
    {"rdzv-id", kRendezvous},
    {"rdzv-conf", "write --start-timeout TIME for the time that ranks wait for each other"},
    {"standalone", "leave it out: without -H all ranks run on this host"},
    {"max-restarts", kRestarts},
    {"monitor-interval", kRestarts},
    {"module", "write the command in full: runjob -np 2 python -m MODULE"},
    {"no-python", "leave it out: the command is any program"},
    {"log-dir", "write --output-filename DIR"},
    {"redirects", "write --output-filename DIR"},
    {"tee", "write --output-filename DIR; the output is shown as well"},
    {"local-ranks-filter", "write --output-ranks LIST"},
    {"numa-binding", "write --bind-to UNIT, such as numa"},
};

}  // namespace

std::vector<std::string> torchrun_spellings() {
  std::vector<std::string> result;
  for (const Counterpart& row : kCounterparts) {
    std::string spelling = fmt::format("--{}", row.name);
    result.push_back(spelling);
    std::replace(spelling.begin() + 2, spelling.end(), '-', '_');
    if (spelling != result.back()) result.push_back(spelling);
  }
  return result;
}

std::string torchrun_hint(std::string_view typed) {
  constexpr std::size_t kShortest = 3;  // letters that name an option
  std::string name(typed.substr(std::min(typed.size(), typed.find_first_not_of('-'))));
  std::replace(name.begin(), name.end(), '_', '-');
  if (!typed.starts_with("--") || name.size() < kShortest) return "";
  for (const Counterpart& row : kCounterparts) {
    if (!row.name.starts_with(name)) continue;
    return fmt::format("{} is torchrun's{}; {}", typed, row.name == name ? "" : fmt::format(" --{}", row.name),
                       row.hint);
  }
  return "";
}

}  // namespace runjob
