#pragma once

#include <cstdint>
#include <runjob/runjob.h>
#include <string>
#include <vector>

#include "bindings/tensorflow/operation.hpp"
#include "bindings/tensorflow/status.hpp"
#include "bindings/tensorflow/tensors.hpp"

namespace runjob::tensorflow {

/// One run of an operation: its tensors in TensorFlow and its handle in the library, from the start of its kernel until
/// its outputs are set.
/// Owner    holds the tensors until end(), so that the library may use their memory.
/// Threads  one at a time.
/// Errors   none is thrown: every failure is reported to TensorFlow, in the context.
class RunningOperation {
 public:
  /// Both are lent until the operation is over: until end() returns, or until submit() returns 0.
  RunningOperation(const Operation& operation, TF_OpKernelContext* context);

  /// Submits the inputs to the library. Returns the handle, whose end the caller awaits before it calls end(). Returns
  /// 0 when the operation is over already, so that end() must not be called. This is so after a failure, and for a
  /// small allreduce that was done within `patience_seconds`, during which this call waits.
  runjob_handle submit(double patience_seconds = 0);
  /// Sets the outputs of the operation, or reports its failure to TensorFlow, and releases the handle. To be called
  /// once, when the handle is done; does not wait.
  void end();

 private:
  void take_inputs();
  void take_input(int index);
  void expect_rows(Buffers& buffers);
  void take_splits();
  bool is_small_allreduce() const;
  runjob_code start(double patience_seconds);
  void set_outputs();
  void set_output(std::size_t index, const void* data, const std::int64_t* shape, std::int32_t ndim);
  void set_numbers(int index, const std::int64_t* values, std::size_t count, bool is_scalar);
  void set_failure(runjob_code code);
  std::string wire_name() const;

  const Operation& operation_;
  TF_OpKernelContext* context_;
  TfStatus status_;
  std::vector<Buffers> tensors_;
  std::vector<std::int64_t> splits_;
  runjob_handle handle_ = 0;
};

}  // namespace runjob::tensorflow
