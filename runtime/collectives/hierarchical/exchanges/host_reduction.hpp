#pragma once

#include <cstddef>
#include <span>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/reduce.hpp"

namespace runjob::runtime {

/// The arithmetic of a reduction that goes from host to host: it adds the inputs of a host's ranks, in their order, to
/// the sums of the hosts before. Averaging and postscaling come last.
///
/// float16 and bfloat16 are added in float32 within a host. Short messages carry them between hosts as float32
/// (wide()), so that they are rounded once. Long messages carry them as they are, rounded once on each host. Short
/// integers that are averaged are always carried as int32, also wide(): they must not wrap on the way.
/// Threads  any; it holds no buffers.
class HostReduction {
 public:
  HostReduction(const Call& call, int size);

  /// The dtype of sums between hosts that are rounded only at the end.
  DType wide() const { return wide_; }

  /// The sums of some hosts may be rounded to the call's dtype, for add().
  bool may_round() const { return wide_ == dtype_ || is_half(dtype_); }

  /// out[i] = partial[i] op inputs[0][i] op inputs[1][i]... in the call's dtype. `partial`: null on the first host.
  /// `is_last`: finish the result. `out` may be one of the operands. Unless may_round(), the first host is the last.
  void add(void* out, const void* partial, std::span<const void* const> inputs, std::size_t count, bool is_last) const;

  /// The same for one host, with the result in wide().
  void begin(void* out, std::span<const void* const> inputs, std::size_t count) const;
  /// out[i] = lower[i] op upper[i], in wide(); `out` may be one of them.
  void join(void* out, const void* lower, const void* upper, std::size_t count) const {
    reduce_(out, lower, upper, count);
  }
  /// Converts from wide() to the call's dtype, averaged and postscaled. `out` may be `sum`, which is overwritten in any
  /// case.
  void finish(void* out, void* sum, std::size_t count) const;

 private:
  void add_two(void* out, const void* lower, const void* upper, std::size_t count, bool is_last) const;
  void accumulate(std::byte* sum, const void* input, bool is_first, std::size_t count) const;
  void load(std::byte* to, const void* input, std::size_t count) const;
  void store(void* out, std::byte* sum, std::size_t count, bool is_last) const;

  DType dtype_, wide_;
  double prescale_, postscale_, divisor_;
  ReduceFunction reduce_;  ///< for wide_
};

}  // namespace runjob::runtime
