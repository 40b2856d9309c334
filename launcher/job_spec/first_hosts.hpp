#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "hostfile/allocation.hpp"

namespace runjob {

/// The question for the hosts with which an elastic job starts.
struct FirstHosts {
  std::string script;  ///< a command line for the shell
  std::string place;   ///< the name of its option, for messages
  int slots_per_host = 1;
  int slots = 1;                                ///< that the job needs
  std::chrono::milliseconds patience{600'000};  ///< for these
  bool as_horovod = false;                      ///< messages have horovodrun's words
};

/// Runs the script until it lists enough slots. Blocks.
/// Errors  Error(kUsage) in one line when the first run fails or prints a bad list; Error(kTimeout).
using DiscoverHosts = std::function<std::vector<Host>(const FirstHosts& wanted, const Environment& environment)>;

}  // namespace runjob
