#include "runtime/collectives/allreduce_stages.hpp"

#include <utility>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/reduce.hpp"

namespace runjob::runtime {
AllreduceStages::AllreduceStages(const Call& call, int size)
    : call_(call), size_(size), dtype_(sum_dtype(call.dtype, call.op, call.postscale)), data_(call.output) {
  const void* source = call.input;
  const bool is_wide = dtype_ != call.dtype, is_limited = is_wide && !is_half(call.dtype) && call.prescale != 1;
  if (is_limited) scale(call.dtype, call.output, std::exchange(source, call.output), call.count, call.prescale, 1);
  if (is_wide) {
    wide_.resize(bytes());
    to_sum(dtype_, wide_.data(), call.dtype, source, call.count);
    source = data_ = wide_.data();
  }
  if (call.prescale != 1 && !is_limited) {
    scale(dtype_, data_, source, call.count, call.prescale, 1);
  } else if (source != data_) {
    copy_bytes(data_, source, bytes());
  }
}

void AllreduceStages::finish() {
  const double divisor = call_.op == ReduceOp::kAverage ? size_ : 1;
  if (call_.postscale != 1 || divisor != 1) scale(dtype_, data_, data_, call_.count, call_.postscale, divisor);
  if (!wide_.empty()) from_sum(call_.dtype, call_.output, dtype_, wide_.data(), call_.count);
}

}  // namespace runjob::runtime
