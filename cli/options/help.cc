#include "cli/options/help.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/options/option_table.hpp"

namespace runjob {
namespace {

constexpr std::size_t kIndent = 8;
constexpr std::size_t kWidth = 96;

constexpr std::string_view kHead =
    "Usage: runjob [options] [--] command [arguments]\n"
    "       runjob resize JOB -np N | --add HOSTS | --remove HOSTS   (an elastic job that runs)\n"
    "\n"
    "Starts the command as several ranks of one job and gives them fast collectives.\n"
    "\n"
    "    runjob -np 4 python train.py          four ranks on this host\n"
    "    runjob -np 2 -H localhost:4 ./solve   two ranks, although there are four slots\n"
    "\n"
    "The command begins with the first word that is not an option.\n";

constexpr std::pair<OptionGroup, std::string_view> kGroups[] = {
    {OptionGroup::kRanks, "Ranks and hosts"},
    {OptionGroup::kPlacement, "Placement"},
    {OptionGroup::kSsh, "Reaching other hosts"},
    {OptionGroup::kOutput, "Output"},
    {OptionGroup::kEnd, "How a job ends"},
    {OptionGroup::kElastic, "Elastic jobs, which go on when ranks are lost"},
    {OptionGroup::kCollectives, "Collectives"},
    {OptionGroup::kConfiguration, "Configuration, and what does not start a job"},
};

constexpr std::string_view kTail =
    "\n"
    "An option's value comes from the command line, else from its environment variable, else from the\n"
    "config file, else it is the default. Long options may be shortened as long as they stay unique.\n"
    "Options of horovodrun, and the common ones of mpirun, are accepted; one that asks for something\n"
    "that runjob does not do causes a warning.\n"
    "Exit status: that of the first rank that failed, 0 if none failed, 2 for an error on the command\n"
    "line, 125 if runjob itself failed. See docs/manual.md and docs/exit-status.md.\n";

/// "  -np, -n, --num-proc N"
std::string usage_of(const Option& option) {
  std::string names;
  for (const std::string_view name : option.short_names) names += fmt::format("{}, ", name);
  names += fmt::format("--{}", option.name);
  if (option.value.empty()) return names;
  return option.implied.empty() ? fmt::format("{} {}", names, option.value)
                                : fmt::format("{}[={}]", names, option.value);
}

std::string wrapped(const std::string& text) {
  std::string result;
  std::string line;
  std::string_view rest(text);
  while (!rest.empty()) {
    const std::size_t end = rest.find(' ');
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!line.empty() && kIndent + line.size() + 1 + word.size() > kWidth) {
      result += fmt::format("{:{}}{}\n", "", kIndent, line);
      line.clear();
    }
    line += fmt::format("{}{}", line.empty() ? "" : " ", word);
  }
  return result + fmt::format("{:{}}{}\n", "", kIndent, line);
}

std::string description_of(const Option& option) {
  std::string text(option.help);
  if (!option.default_text.empty() && option.default_text != "false")
    text += fmt::format(" (default: {})", option.default_text);
  if (!option.variables.empty()) text += fmt::format(" [{}]", option.variables.front());
  return text;
}

}  // namespace

std::string help_text() {
  std::string text(kHead);
  for (const auto& [group, title] : kGroups) {
    text += fmt::format("\n{}:\n", title);
    for (const Option& option : option_table()) {
      if (option.group == group) text += fmt::format("  {}\n{}", usage_of(option), wrapped(description_of(option)));
    }
  }
  return text + std::string(kTail);
}

}  // namespace runjob
