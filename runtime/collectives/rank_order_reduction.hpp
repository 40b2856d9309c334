#pragma once

#include <cstddef>
#include <span>

#include "runtime/collectives/half_reduction.hpp"
#include "runtime/collectives/reduce.hpp"

namespace runjob::runtime {

/// The whole arithmetic of an allreduce over the inputs of all ranks: prescaling, reduction in the order of the ranks,
/// averaging and postscaling. Because of the order, the result has the same bits on any rank, in any division into
/// pieces, and in every repetition. float16 and bfloat16 are widened to float32 first and rounded once at the end.
/// Short integers that are averaged are added in int32: see sum_dtype().
/// Threads  any; holds no buffers.
class RankOrderReduction {
 public:
  RankOrderReduction(DType dtype, ReduceOp op, double prescale, double postscale, int size);

  /// True if the object was made with these arguments.
  bool is_of(DType dtype, ReduceOp op, double prescale, double postscale, int size) const {
    return dtype == dtype_ && op == op_ && prescale == prescale_ && postscale == postscale_ && size == size_;
  }

  /// `inputs` has one buffer for each rank, by rank, of `count` elements each. `out` may be one of them, and must not
  /// overlap them otherwise.
  /// Cost  reads each input once from memory and writes `out` once.
  void run(void* out, std::span<const void* const> inputs, std::size_t count) const;

 private:
  bool writes_early_into(const void* out, std::span<const void* const> inputs) const;
  void run_piece(std::byte* result, std::span<const void* const> inputs, std::size_t first, std::size_t count) const;
  void run_piece_of_halves(void* out, std::span<const void* const> inputs, std::size_t first, std::size_t count) const;
  void run_piece_of_integers(void* out, std::span<const void* const> inputs, std::size_t first,
                             std::size_t count) const;

  DType dtype_, wide_;  ///< `wide_`: sum_dtype()
  ReduceOp op_;
  int size_;
  double prescale_, postscale_, divisor_;
  bool is_plain_;                ///< true: nothing is scaled
  ReduceFunction reduce_;        ///< for dtype_
  ReduceFunction reduce_wide_;   ///< for wide_
  HalfReduction reduce_halves_;  ///< null unless it does the whole reduction
};

}  // namespace runjob::runtime
