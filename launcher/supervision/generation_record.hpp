#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace runjob {

/// One generation of an elastic job, for the status file.
struct GenerationRecord {
  int number = 0;
  int size = 0;
  std::string cause;                    ///< why it was formed
  std::vector<std::string> left, came;  ///< "rank 5 on s2": members of the one before, and of this one
  double stood_still_seconds = 0;       ///< from the end of the one before
  std::vector<int> processes = {};      ///< the number of each rank's process
  /// How many steps of the one before were begun after the commit from which this one goes on.
  std::optional<std::int64_t> steps_redone = std::nullopt;

  bool operator==(const GenerationRecord&) const = default;
};

}  // namespace runjob
