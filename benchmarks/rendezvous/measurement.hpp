#pragma once

#include <chrono>
#include <cstdlib>
#include <string_view>

/// The input and the result of both benchmarks, and the functions that they share.
namespace runjob::benchmark {

struct Size {
  int hosts = 0;
  int ranks_per_host = 0;

  int ranks() const { return hosts * ranks_per_host; }
};

/// Seconds since the job began, when all had come so far, and what it took at the head.
struct Measurement {
  double joined = 0;
  double barrier_passed = 0;
  double gathered = 0;
  double head_cpu_seconds = 0;
  double head_peak_mb = 0;
};

inline constexpr std::size_t kBlobBytes = 100;

/// Milliseconds of a clock that all processes of this host share.
inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Ends the program with the error `what` unless `condition` holds.
void require(bool condition, std::string_view what);

}  // namespace runjob::benchmark
