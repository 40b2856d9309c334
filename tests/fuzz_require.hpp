#pragma once

#include <cstdlib>

/// Ends a fuzz target when a condition does not hold, which libFuzzer reports with the input.
inline void require(bool condition) {
  if (!condition) std::abort();
}
