#include "cli/options/command_line.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/options/option_table.hpp"
#include "cli/options/prepare_arguments.hpp"

namespace runjob {
namespace {

/// One row of the table as an option of CLI11. Values stay text: where they come from does not matter to what
/// they mean, so one place reads them for all sources.
void add_option(CLI::App& app, const Option& option) {
  const std::string name = fmt::format("--{}", option.name);
  if (option.value.empty()) {
    app.add_flag(name)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    return;
  }
  app.add_option(name)->expected(1)->multi_option_policy(option.repeatable ? CLI::MultiOptionPolicy::TakeAll
                                                                           : CLI::MultiOptionPolicy::TakeLast);
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments, bool as_horovodrun) {
  const PreparedArguments prepared = prepare_arguments(arguments, as_horovodrun);
  CLI::App app;
  app.set_help_flag();  // ours is an option like the others
  for (const Option& option : option_table()) add_option(app, option);
  std::vector<std::string> reversed(prepared.options.rbegin(), prepared.options.rend());  // as CLI11 wants it
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw Error(Errc::kUsage, fmt::format("{}; runjob --help lists all options", error.what()));
  }
  CommandLine line;
  line.command = prepared.command;
  line.without_value = prepared.without_value;
  for (const auto& [name, typed] : prepared.typed) {
    const CLI::results_t results = app.get_option("--" + name)->results();
    const bool all = find_option(name)->repeatable;
    line.settings[name] = Setting{all ? results : CLI::results_t{results.back()}, typed};
  }
  return line;
}

}  // namespace runjob
