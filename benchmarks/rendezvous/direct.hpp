#pragma once

#include "benchmarks/rendezvous/measurement.hpp"

namespace runjob::benchmark {

/// Measures the TCP front. Threads of another process simulate the ranks, each with a client of its own.
Measurement measure_direct(Size size);

}  // namespace runjob::benchmark
