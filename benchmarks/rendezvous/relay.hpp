#pragma once

#include "benchmarks/rendezvous/measurement.hpp"

namespace runjob::benchmark {

/// Measures the real job. Another process simulates its agents, over one socket pair for each host.
Measurement measure_relay(Size size);

}  // namespace runjob::benchmark
