#pragma once

#include <span>

namespace runjob::runtime {

/// Adasum of the vectors of all ranks is their sum with these factors, which follow from the vectors' dot products
/// alone.
///
/// Definition  With p the largest power of two up to the number of ranks, rank p+i joins rank i first. Then ranks join
///             at the distances 1, 2, 4 and so on. Vectors a and b that stand for m and n ranks become
///                 (1 - m/(m+n) a·b/|a|²) a + (1 - n/(m+n) a·b/|b|²) b.
///             So parallel vectors become their mean, and orthogonal ones their sum. A factor of this rule is 1 where
///             the squared norm is below 2^-511, or below 2^-40 of the terms that cancelled in it.
/// dots        a matrix by rows, one row for each rank. Only its upper triangle is read.
/// factors     one for each rank. All are NaN if a dot product is not finite.
/// Cost        some np² operations.
/// Source      Maleki et al., "Scaling Distributed Training with Adaptive Summation", MLSys 2021, section 3. The
///             weights m and n are ours: they are equal where the number of ranks is a power of two.
void find_adasum_factors(std::span<const double> dots, std::span<double> factors);

}  // namespace runjob::runtime
