#pragma once

#include <cstddef>
#include <span>

#include "runtime/collectives/instruction_set.hpp"
#include "runtime/collectives/operation.hpp"

/// Arithmetic in float64 over one slice of every rank's tensor, for Adasum. Pure. The order of all additions follows
/// from the number of elements alone.
/// dtype   float16, bfloat16, float32 or float64. The slices need not be aligned beyond that.
/// Memory  256 float64 for each rank.
namespace runjob::runtime {

/// The dot products of all pairs of `slices`, into the upper triangle of the matrix `dots`, by rows.
void find_dot_products(DType dtype, std::span<const void* const> slices, std::size_t count, std::span<double> dots,
                       InstructionSet set = best_instruction_set());

/// out[i] = the sum of factors[r] * slices[r][i] over all ranks, rounded once. `out` may be one of the slices.
void sum_with_factors(DType dtype, void* out, std::span<const void* const> slices, std::size_t count,
                      std::span<const double> factors, InstructionSet set = best_instruction_set());

}  // namespace runjob::runtime
