#include "cli/options/mpirun_options.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

/// A spelling of mpirun or mpiexec for an option of runjob.
struct Spelling {
  std::string_view text, option;
};

constexpr Spelling kSpellings[] = {
    {"-c", "num-proc"},
    {"--np", "num-proc"},
    {"--n", "num-proc"},
    {"-host", "hosts"},
    {"--host", "hosts"},
    {"-hosts", "hosts"},
    {"-machinefile", "hostfile"},
    {"--machinefile", "hostfile"},
    {"-wdir", "wdir"},
    {"-wd", "wdir"},
    {"--wd", "wdir"},
    {"-timestamp-output", "prefix-output-with-timestamp"},
    {"--timestamp-output", "prefix-output-with-timestamp"},
    {"-output-filename", "output-filename"},
    {"-iface", "network-interfaces"},
    {"-gmca", "mca"},
    {"--gmca", "mca"},
};

std::string ranks_per_node(const std::string& value) {
  return fmt::format("ppr:{}:node", value);
}

/// mpiexec's hosts have one slot unless the user gives a number, and its option does not look at them.
std::string ranks_per_node_at_least(const std::string& value) {
  return fmt::format("ppr:{}:node:OVERSUBSCRIBE", value);
}

/// "NAME VALUE" of mpiexec as "NAME=VALUE".
std::string variable_assignment(const std::string& value) {
  std::string text = value;
  std::replace(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(' ') + 1), ' ', '=');
  return text;
}

Option row(std::string_view name, std::vector<std::string_view> spellings, std::string_view help) {
  Option option;
  option.name = name;
  option.foreign_names = std::move(spellings);
  option.help = help;
  option.group = OptionGroup::kMpirun;
  return option;
}

Option translated(Option option, std::string_view value, std::string_view stands_for,
                  std::string (*translate)(const std::string&)) {
  option.value = value;
  option.stands_for = stands_for;
  option.translate = translate;
  option.values = static_cast<int>(std::count(value.begin(), value.end(), ' ')) + 1;
  return option;
}

Option without_effect(Option option, std::string_view value, std::string_view why) {
  option.value = value;
  option.no_effect = why;
  return option;
}

}  // namespace

std::vector<Option> mpirun_options() {
  std::vector<Option> options = {
      row("allow-run-as-root", {"-allow-run-as-root"}, "runjob runs as any user"),
      row("oversubscribe", {"-oversubscribe"}, "more ranks than slots"),
      row("nooversubscribe", {"-nooversubscribe"}, "runjob starts no more ranks than there are slots"),
      row("quiet", {"-q", "-quiet"}, "runjob prints nothing unless --verbose is given"),
      row("genvall", {"-genvall", "-envall"}, "the ranks get all variables anyway"),
      translated(row("npernode", {"-npernode", "-N"}, "ranks on each host"), "N", "map-by", ranks_per_node),
      translated(row("ppn", {"-ppn", "-perhost", "--perhost"}, "ranks on each host"), "N", "map-by",
                 ranks_per_node_at_least),
      translated(row("genv", {"-genv", "-env", "--env"}, "a variable of the ranks"), "NAME VALUE", "export",
                 variable_assignment),
      without_effect(row("prefix", {"-prefix"}, "where Open MPI is on the hosts"), "PATH",
                     "runjob needs no MPI on the hosts; the ranks get PATH and LD_LIBRARY_PATH as they are here"),
      without_effect(row("report-bindings", {"-report-bindings"}, "the cores of each rank"), "",
                     "--verbose prints the CPUs to which each rank is bound"),
      row("rank-by", {"-rank-by"}, "the order of ranks"),
  };
  options.back().value = "UNIT";
  return options;
}

void add_mpirun_spellings(std::vector<Option>& options) {
  for (const Spelling& spelling : kSpellings) {
    const auto has_name = [&](const Option& option) { return option.name == spelling.option; };
    const auto found = std::find_if(options.begin(), options.end(), has_name);
    if (found == options.end()) throw Error(Errc::kBug, fmt::format("{} has no option", spelling.text));
    found->foreign_names.push_back(spelling.text);
  }
}

}  // namespace runjob
