#include "launcher/job/output_options.hpp"

#include <algorithm>
#include <string>

namespace runjob {
namespace {

std::string variable(const JobSpec& spec, const char* name) {
  const auto found = spec.environment.find(name);
  return found == spec.environment.end() ? "" : found->second;
}

OutputTime::Format time_format(const JobSpec& spec) {
  if (spec.tags.time) return OutputTime::Format::kMicroseconds;
  return spec.prefix_output_with_timestamp ? OutputTime::Format::kSeconds : OutputTime::Format::kNone;
}

}  // namespace

OutputRelay::Options output_options(const JobSpec& spec, std::int64_t window) {
  OutputRelay::Options options;
  for (const Placement& placement : spec.allocation.placements) {
    options.ranks.push_back({spec.allocation.hosts.at(static_cast<std::size_t>(placement.host)).name});
  }
  if (spec.output_ranks) {
    for (OutputRelay::Rank& rank : options.ranks) rank.shown = false;
    options.later_shown = false;
    for (const int rank : *spec.output_ranks) options.ranks.at(static_cast<std::size_t>(rank)).shown = true;
  }
  options.tags = spec.tags;
  options.time = time_format(spec);
  const std::string terminal = variable(spec, "TERM");
  const bool can_draw = !terminal.empty() && terminal != "dumb";
  options.colours = can_draw && variable(spec, "NO_COLOR").empty();
  // The only rank that is shown, without tags, has the terminal to itself: nothing of what it writes is changed.
  const auto shown =
      std::count_if(options.ranks.begin(), options.ranks.end(), [](const auto& rank) { return rank.shown; });
  const bool unchanged = spec.tags.none() && options.time == OutputTime::Format::kNone && shown == 1;
  const TerminalUse shared = can_draw ? TerminalUse::kRows : TerminalUse::kLines;
  options.terminal = unchanged ? TerminalUse::kUnchanged : shared;
  options.directory = spec.output_directory;
  options.window = window;
  return options;
}

}  // namespace runjob
