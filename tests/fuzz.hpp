#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// The beginning of every fuzz target. A target has one source, `<name>_fuzz.cc`, which alone includes this and defines
/// fuzz().

/// Ends the target unless `condition` holds: libFuzzer keeps the input, and the sanitizer's report has the line.
inline void require(bool condition) {
  if (!condition) std::abort();
}

/// Feeds one input of libFuzzer to what the target tests. Nothing is kept for the next one.
void fuzz(std::string_view input);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
