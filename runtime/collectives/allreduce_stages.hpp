#pragma once

#include <cstddef>
#include <vector>

#include "runtime/collectives/backend.hpp"

namespace runjob::runtime {

/// The stages around every allreduce's exchange with the other ranks: prescaling into a buffer that is then reduced in
/// place, and averaging and postscaling out of it. 16-bit floats are exchanged as float32 and rounded once, short
/// integers that are averaged as int32: see sum_dtype().
/// Owner  the call's buffers stay the caller's; they must outlive this object.
class AllreduceStages {
 public:
  /// Prescales the input into the buffer to reduce.
  AllreduceStages(const Call& call, int size);

  void* data() { return data_; }
  DType dtype() const { return dtype_; }
  std::size_t bytes() const { return call_.count * size_of(dtype_); }

  /// Averages, postscales and writes the result to the call's output.
  void finish();

 private:
  const Call& call_;
  int size_;
  DType dtype_;  ///< dtype of the buffer to reduce
  std::vector<std::byte> wide_;
  void* data_;
};

}  // namespace runjob::runtime
