#pragma once

#include <string>
#include <vector>

#include "cli/options/settings.hpp"

namespace runjob {

struct CommandLine {
  Settings settings;  ///< only what was given
  std::vector<std::string> command;
  std::string without_value;  ///< see PreparedArguments

  bool has(std::string_view option) const { return settings.find(option) != settings.end(); }
};

/// The words after the program's name as settings and a command. An option given twice has its last value, as
/// with horovodrun; a repeatable one has all. Errors  kUsage, see prepare_arguments().
CommandLine parse_command_line(const std::vector<std::string>& arguments, bool as_horovodrun = false);

}  // namespace runjob
