#pragma once

#include <cstddef>

#include "benchmarks/collectives/native/arguments.hpp"

/// The values that the ranks send, and those that they must receive: small integers, which all three dtypes hold and
/// sum exactly.
namespace runjob::benchmark {

std::size_t bytes_of(DType dtype);

/// The number of elements of one rank's input: `bytes` full, at least one, and for the operations that divide them a
/// multiple of the number of ranks.
std::size_t input_count(Operation operation, DType dtype, std::size_t bytes, int size);

/// How many elements the result has.
std::size_t output_count(Operation operation, std::size_t inputs, int size);

/// Writes what `rank` gives.
void fill(DType dtype, int rank, std::byte* buffer, std::size_t count);

/// True if `result` has the values that `rank` must receive after fill() on all ranks.
bool is_right(Operation operation, DType dtype, const std::byte* result, std::size_t inputs, int rank, int size,
              int root);

}  // namespace runjob::benchmark
