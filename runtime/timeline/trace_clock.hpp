#pragma once

#include <chrono>
#include <cstdint>

namespace runjob::runtime {

/// The time of a record.
/// Units  nanoseconds of the steady clock.
inline std::int64_t trace_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace runjob::runtime
