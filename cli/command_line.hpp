#pragma once

#include <string>
#include <vector>

#include "cli/settings.hpp"

namespace runjob {

struct CommandLine {
  Settings settings;  ///< only what was given
  std::vector<std::string> command;

  bool has(std::string_view option) const { return settings.find(option) != settings.end(); }
};

/// The words after the program's name as settings and a command. An option given twice has its last value, as
/// with horovodrun; a repeatable one has all. Errors  kUsage, see prepare_arguments().
CommandLine parse_command_line(const std::vector<std::string>& arguments);

}  // namespace runjob
