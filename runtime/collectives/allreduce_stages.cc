#include "runtime/collectives/allreduce_stages.hpp"

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/reduce.hpp"

namespace runjob::runtime {
AllreduceStages::AllreduceStages(const Call& call, int size)
    : call_(call), size_(size), dtype_(sum_dtype(call.dtype)), data_(call.output) {
  const void* source = call.input;
  if (dtype_ != call.dtype) {
    wide_.resize(call.count);
    widen(call.dtype, wide_.data(), call.input, call.count);
    source = data_ = wide_.data();
  }
  if (call.prescale != 1) {
    scale(dtype_, data_, source, call.count, call.prescale, 1);
  } else if (source != data_) {
    copy_bytes(data_, source, bytes());
  }
}

void AllreduceStages::finish() {
  const double divisor = call_.op == ReduceOp::kAverage ? size_ : 1;
  if (call_.postscale != 1 || divisor != 1) scale(dtype_, data_, data_, call_.count, call_.postscale, divisor);
  if (!wide_.empty()) narrow(call_.dtype, call_.output, wide_.data(), call_.count);
}

}  // namespace runjob::runtime
