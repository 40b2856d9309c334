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
  /// As the user wrote it: the option directly before the command that takes its value after '=' only, and had none.
  std::string without_value;
};

/// Rewrites what CLI11 does not know: single-dash long options (`-np 2`, `-np=2`, `-hostfile F`), values glued
/// to a one-letter option (`-n2`), unambiguous prefixes of long options (`--num 2`), and the spellings of mpirun and
/// mpiexec. Stops at the first word that is no option, where the command begins; one `--` before it is dropped.
/// `arguments` is without the program's name. `as_horovodrun`: a prefix that means one option to horovodrun means that
/// one.
/// Errors  kUsage for an unknown option (naming the nearest, also of mpirun's and torchrun's), an ambiguous prefix
///         (naming all candidates), a missing value, and options that exclude each other (ExclusiveOptions).
PreparedArguments prepare_arguments(const std::vector<std::string>& arguments, bool as_horovodrun = false);

}  // namespace runjob
