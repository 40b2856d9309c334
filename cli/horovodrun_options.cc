#include "cli/horovodrun_options.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

constexpr std::string_view kElastic = "elastic jobs are not in this version of runjob; they come with a later one";
constexpr std::string_view kNoTuning = "there is no autotuning in this version";
constexpr std::string_view kNoTimes =
    "the ranks' log has no times; --tag-output=time,rank,stream shows when each line came";
constexpr std::string_view kNoMpi = "runjob starts the ranks itself";
constexpr std::string_view kNoTorus = "hosts are joined in one way, see --hierarchical-allreduce";

struct Row {
  std::string_view name;
  std::string_view value;  // "" for a flag
  std::string_view why;    // it has no effect
  bool refused = false;
  int values = 1;
};

constexpr Row kRows[] = {
    {"mpi", "", kNoMpi},
    {"jsrun", "", kNoMpi},
    {"mpi-args", "TEXT", kNoMpi},
    {"binding-args", "TEXT", "no mpirun gets them; --bind-to binds the ranks"},
    {"mpi-threads-disable", "", "the ranks do not use MPI"},
    {"no-mpi-threads-disable", "", "the ranks do not use MPI"},
    {"disable-cache", "", "nothing is kept of earlier jobs' checks"},
    {"torus-allreduce", "", kNoTorus},
    {"no-torus-allreduce", "", kNoTorus},
    {"num-nccl-streams", "N", "there is no NCCL backend in this version"},
    {"thread-affinity", "N", "--bind-to binds the ranks with all of their threads"},
    {"autotune", "", kNoTuning},
    {"no-autotune", "", kNoTuning},
    {"autotune-log-file", "FILE", kNoTuning},
    {"autotune-warmup-samples", "N", kNoTuning},
    {"autotune-steps-per-sample", "N", kNoTuning},
    {"autotune-bayes-opt-max-samples", "N", kNoTuning},
    {"autotune-gaussian-process-noise", "X", kNoTuning},
    {"log-with-timestamp", "", kNoTimes},
    {"log-without-timestamp", "", kNoTimes},
    {"log-hide-timestamp", "", kNoTimes},
    {"no-log-hide-timestamp", "", kNoTimes},
    {"host-discovery-script", "FILE", kElastic, true},
    {"min-np", "N", kElastic, true},
    {"min-num-proc", "N", kElastic, true},
    {"max-np", "N", kElastic, true},
    {"max-num-proc", "N", kElastic, true},
    {"slots-per-host", "N", kElastic, true},
    {"elastic-timeout", "TIME", kElastic, true},
    {"reset-limit", "N", kElastic, true},
    {"blacklist-cooldown-range", "MIN MAX", kElastic, true, 2},
};

/// What an opposite stands for: it is never in the settings itself.
Option opposite_of(std::string_view option, std::string_view name) {
  Option result;
  result.help = "undoes the other one";
  result.name = name;
  result.stands_for = option;
  result.group = OptionGroup::kHorovodrun;
  return result;
}

}  // namespace

std::vector<Option> horovodrun_options() {
  std::vector<Option> options;
  for (const Row& row : kRows) {
    Option option;
    option.name = row.name;
    option.value = row.value;
    option.values = row.values;
    option.no_effect = row.why;
    option.help = row.why;
    option.refused = row.refused;
    option.group = OptionGroup::kHorovodrun;
    options.push_back(std::move(option));
  }
  options.push_back(opposite_of("no-stall-check", "stall-check"));
  options.push_back(opposite_of("timeline-mark-cycles", "no-timeline-mark-cycles"));
  return options;
}

void warn_of_horovodrun_options(const Settings& settings, Warnings& warnings) {
  for (const auto& [name, setting] : settings) {
    const Option* option = find_option(name);
    if (option == nullptr || option->no_effect.empty()) continue;
    const std::string place = place_of(name, setting);
    if (option->refused) throw Error(Errc::kUsage, fmt::format("{}: {}", place, option->no_effect));
    warnings.push_back(fmt::format("{} has no effect: {}", place, option->no_effect));
  }
}

}  // namespace runjob
