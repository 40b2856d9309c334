#pragma once

#include <chrono>
#include <string>
#include <vector>

/// What people read about a new generation of an elastic job. Pure.
namespace runjob {

/// The cause of a generation before which nothing failed.
inline constexpr const char* kHostsChanged = "the hosts have changed";

/// "the hosts have changed: rank 2 on s2 has left, rank 3 on s4 has come": of many ranks only how many.
std::string change_text(const std::vector<std::string>& left, const std::vector<std::string>& came);

struct NewGeneration {
  std::string reason;  ///< "rank 5 on s2 was killed by signal 9"
  int number = 0;
  int ranks = 0;
  std::chrono::steady_clock::duration stood_still{};
  std::vector<std::string> excluded;  ///< hosts that get no new process: "s2", "s3 for 20 s"
};

/// "rank 5 on s2 was killed by signal 9. The job goes on with 7 ranks (generation 1), which stood still for 0.21 s; no
/// new process starts on s2."
std::string generation_line(const NewGeneration& generation);

}  // namespace runjob
