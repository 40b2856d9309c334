#include "cli/options/horovodrun_options.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"

namespace runjob {
namespace {

constexpr std::string_view kNoProcess = "the search compares times and has no Gaussian process";
constexpr std::string_view kNoMpi = "runjob starts the ranks itself; start a program that uses MPI with mpirun";
constexpr std::string_view kNoTorus = "there is one algorithm between hosts, see --hierarchical-allreduce";

using Check = void (*)(std::string_view value, std::string_view place);

void check_integer(std::string_view value, std::string_view place) {
  using Int = std::numeric_limits<std::int32_t>;
  parse_integer(value, place, Int::min(), Int::max());
}

void check_count(std::string_view value, std::string_view place) {
  parse_integer(value, place, 0, std::numeric_limits<std::int64_t>::max());
}

void check_share(std::string_view value, std::string_view place) {
  parse_number(value, place, 0, 1);
}

struct Row {
  std::string_view name;
  std::string_view value;              // "" for a flag
  std::string_view why;                // the reason why it has no effect
  std::string_view key = {};           // in horovodrun's config files
  Check check = nullptr;               // as horovodrun checks the value
  std::string_view default_text = {};  // a value that causes no warning
};

constexpr Row kRows[] = {
    {"mpi", "", kNoMpi},
    {"jsrun", "", kNoMpi},
    {"mpi-args", "TEXT", kNoMpi, "library_options.mpi_args"},
    {"binding-args", "TEXT", "there is no mpirun to receive them; --bind-to binds the ranks"},
    {"torus-allreduce", "", kNoTorus, "params.torus_allreduce"},
    {"thread-affinity", "N", "--bind-to binds the ranks with all of their threads", "library_options.thread_affinity",
     check_integer},
    {"num-nccl-streams", "N", "collectives on a GPU run on one stream", "library_options.num_nccl_streams", check_count,
     "1"},
    {"autotune-gaussian-process-noise", "X", kNoProcess, "autotune.gaussian_process_noise", check_share, "0.8"},
};

/// Options that ask for what is so anyway.
constexpr Row kSilent[] = {
    {"mpi-threads-disable", "", "the ranks do not use MPI", "library_options.mpi_threads_disable"},
    {"disable-cache", "", "runjob keeps no results of earlier jobs' checks"},
};

/// Options of runjob that horovodrun has under the same name.
constexpr std::string_view kOfBoth[] = {
    "num-proc",
    "check-build",
    "start-timeout",
    "min-np",
    "max-np",
    "elastic-timeout",
    "reset-limit",
    "blacklist-cooldown-range",
    "host-discovery-script",
    "slots-per-host",
    "network-interfaces",
    "output-filename",
    "verbose",
    "config-file",
    "ssh-port",
    "ssh-identity-file",
    "hosts",
    "hostfile",
    "gloo",
    "fusion-threshold-mb",
    "cycle-time-ms",
    "autotune",
    "autotune-log-file",
    "autotune-warmup-samples",
    "autotune-steps-per-sample",
    "autotune-bayes-opt-max-samples",
    "cache-capacity",
    "hierarchical-allreduce",
    "no-hierarchical-allreduce",
    "hierarchical-allgather",
    "no-hierarchical-allgather",
    "timeline-filename",
    "timeline-mark-cycles",
    "no-stall-check",
    "stall-check-warning-time-seconds",
    "stall-check-shutdown-time-seconds",
    "log-level",
    "prefix-output-with-timestamp",
    "tcp",
    "gloo-timeout-seconds",
    "help",
    "version",
};

Option option_of(const Row& row) {
  Option option;
  option.name = row.name;
  option.value = row.value;
  option.values = static_cast<int>(std::count(row.value.begin(), row.value.end(), ' ')) + 1;
  option.horovodrun_key = row.key;
  option.check = row.check;
  option.default_text = row.default_text;
  option.help = row.why;
  option.group = OptionGroup::kHorovodrun;
  return option;
}

/// An option that negates `option`. The settings never contain it, only `option`.
Option opposite_of(std::string_view option, std::string_view name) {
  Option result;
  result.help = "the opposite of another option";
  result.name = name;
  result.stands_for = option;
  result.group = OptionGroup::kHorovodrun;
  return result;
}

}  // namespace

std::vector<Option> horovodrun_options() {
  std::vector<Option> options;
  for (const Row& row : kRows) {
    options.push_back(option_of(row));
    options.back().no_effect = row.why;
  }
  for (const Row& row : kSilent) options.push_back(option_of(row));
  options.push_back(
      option_of({"log-hide-timestamp", "", "leaves the time out of the ranks' log", "logging.hide_timestamp"}));
  options.back().foreign_names = {"--log-without-timestamp"};
  options.push_back(opposite_of("no-stall-check", "stall-check"));
  options.push_back(opposite_of("timeline-mark-cycles", "no-timeline-mark-cycles"));
  options.push_back(opposite_of("torus-allreduce", "no-torus-allreduce"));
  options.push_back(opposite_of("autotune", "no-autotune"));
  options.push_back(opposite_of("mpi-threads-disable", "no-mpi-threads-disable"));
  options.push_back(opposite_of("log-hide-timestamp", "no-log-hide-timestamp"));
  options.push_back(opposite_of("log-hide-timestamp", "log-with-timestamp"));
  return options;
}

bool horovodrun_has(const Option& option) {
  return option.group == OptionGroup::kHorovodrun ||
         std::find(std::begin(kOfBoth), std::end(kOfBoth), option.name) != std::end(kOfBoth);
}

void warn_of_horovodrun_options(const Settings& settings, Warnings& warnings) {
  for (const auto& [name, setting] : settings) {
    const Option* option = find_option(name);
    if (option == nullptr) continue;
    const std::string place = place_of(name, setting);
    if (option->check != nullptr) option->check(setting.values.back(), place);
    if (option->no_effect.empty()) continue;
    const std::string& value = setting.values.back();
    if (value == option->default_text || (option->value.empty() && !parse_bool(value, place))) continue;
    warnings.push_back(fmt::format("{} has no effect: {}", place, option->no_effect));
  }
}

}  // namespace runjob
