#pragma once

#include <string>

#include <fmt/format.h>

/// Sentences of horovodrun, for which scripts look in the output of a job that was started under that name.
/// Source   Horovod 0.28.1: runner/gloo_run.py, runner/elastic/driver.py, constants.py, runner/common/util/timeout.py.
namespace runjob {

inline constexpr char kHorovodFailureWords[] =
    "Horovod detected that one or more processes exited with non-zero status: ";

/// A job has had fewer than `ranks` slots or ranks for so many seconds.
inline std::string horovod_timeout_words(int ranks, double seconds) {
  return fmt::format(
      "Timed out waiting for minimum number of slots to become available. Please check that you have enough resources "
      "to run at least {} Horovod processes. Timeout after {:g} seconds.",
      ranks, seconds);
}

inline std::string horovod_reset_words(int limit) {
  return fmt::format("Horovod was shutdown because number of resets during elastic job exceeded limit: {}", limit);
}

}  // namespace runjob
