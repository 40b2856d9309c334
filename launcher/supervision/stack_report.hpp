#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hostfile/allocation.hpp"

/// Reports for people on what the stacks of a job's ranks have in common. Pure functions.
namespace runjob {

/// Where one rank was: frames of its main thread, the innermost first.
struct RankStack {
  int rank = 0;
  std::vector<std::string> python;
  std::string missing_python;  ///< why there is no Python stack, if there should be one
  std::vector<std::string> native;
  std::string missing;  ///< why there is no native stack
};

/// The frames of the main thread in the output of eu-stack or gdb: names without addresses and arguments.
std::vector<std::string> native_frames(std::string_view text);

/// Takes the text of Python's faulthandler, written on SIGABRT, out of a rank's standard error. Returns the rest, and
/// the frames of the thread that got the signal; of the main thread if it was one without Python.
/// Source   CPython, Python/traceback.c and Modules/faulthandler.c.
std::pair<std::string, std::vector<std::string>> take_python_frames(std::string_view text);

/// Puts ranks with the same stack together, the largest group first, and marks the ranks that differ.
std::string stack_report(const Allocation& allocation, const std::vector<RankStack>& stacks);

}  // namespace runjob
