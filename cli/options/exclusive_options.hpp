#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace runjob {

/// Options of one command line of which horovodrun takes one at most: --gloo, --mpi and --jsrun, an option and its
/// opposite, and the options for times in the output. Config files and variables are not concerned, since the command
/// line wins over them.
class ExclusiveOptions {
 public:
  /// Adds an option that is on the command line. `typed`: as the user wrote it.
  /// Errors  kUsage naming both options when an earlier one excludes it. The same option twice is no error.
  void add(std::string_view name, const std::string& typed);

 private:
  std::vector<std::pair<std::string_view, std::string>> added_;  // name and spelling, in the order of the command line
};

}  // namespace runjob
