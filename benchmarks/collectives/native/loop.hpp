#pragma once

#include "benchmarks/collectives/native/interface.hpp"

namespace runjob::benchmark {

/// Checks and times the operation at each size, and prints rank 0's measurements as lines of JSON:
///
///     {"library": "..."}
///     {"bytes": 4096, "operations": 1, "processor_us": 9.5, "times_us": [...]}
///     {"bytes": 4096, "skipped": "why"}
///
/// There is one time for each sample of this many operations. "processor_us" is the processor time that all threads of
/// rank 0 took for a sample, on average.
///
/// Samples follow each other without a barrier. Ranks cannot run ahead: all operations but the broadcast need the data
/// of every rank, and a sample of the broadcast has one from each root. So the sum of rank 0's times is the time that
/// passed. The slowest rank's times would count a delay twice, once on the rank that was late and once on the one that
/// waited.
///
/// Errors  std::runtime_error for a wrong result.
void measure(Interface& interface, const Arguments& arguments);

}  // namespace runjob::benchmark
