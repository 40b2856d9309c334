#pragma once

#include <chrono>
#include <cstdlib>
#include <string_view>

/// What both benchmarks take and give.
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

/// What cannot go on: ends the program with `what`.
void require(bool condition, std::string_view what);

/// The real job, its agents simulated by another process over one socket pair for each host.
Measurement measure_relay(Size size);

/// The TCP front, its ranks simulated by threads of another process, each with a client of its own.
Measurement measure_direct(Size size);

}  // namespace runjob::benchmark
