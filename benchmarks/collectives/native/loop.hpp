#pragma once

#include "benchmarks/collectives/native/interface.hpp"

namespace runjob::benchmark {

/// Checks and times the operation at each size, and prints what rank 0 measured: lines of JSON,
///
///     {"library": "..."}
///     {"bytes": 4096, "operations": 1, "times_us": [...]}       one time for each sample, which is so many operations
///     {"bytes": 4096, "skipped": "why"}
///
/// Samples follow each other without a barrier. They cannot run ahead: all operations but the broadcast need the data of every
/// rank, and of the broadcast a sample has one from each root. So rank 0's times add up to what really passed, whereas the
/// slowest rank's would count a delay twice, once on the rank that was late and once on the one that waited.
///
/// Errors  std::runtime_error for a wrong result.
void measure(Interface& interface, const Arguments& arguments);

}  // namespace runjob::benchmark
