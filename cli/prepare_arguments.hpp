#pragma once

#include <map>
#include <string>
#include <vector>

namespace runjob {

/// A command line cut in two, its options respelled for CLI11: only `--name` and its value as the next word.
struct PreparedArguments {
  std::vector<std::string> options;
  std::map<std::string, std::string> typed;  ///< option name -> as the user last wrote it: "-np"
  std::vector<std::string> command;          ///< untouched; empty when there is none
};

/// Rewrites what CLI11 does not know: single-dash long options (`-np 2`, `-np=2`, `-hostfile F`), values glued
/// to a one-letter option (`-n2`), unambiguous prefixes of long options (`--num 2`). Stops at the first word
/// that is no option, where the command begins; one `--` before it is dropped.
/// `arguments` is without the program's name.
/// Errors  kUsage for an unknown option (naming the nearest), an ambiguous prefix (naming all candidates), and
///         a missing value.
PreparedArguments prepare_arguments(const std::vector<std::string>& arguments);

}  // namespace runjob
