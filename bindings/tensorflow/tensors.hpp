#pragma once

#include <cstdint>
#include <memory>
#include <runjob/runjob.h>
#include <vector>

#include "bindings/tensorflow/c_interface.hpp"

namespace runjob::tensorflow {

struct DeleteTensor {
  void operator()(TF_Tensor* tensor) const { tf.DeleteTensor(tensor); }
};
using Tensor = std::unique_ptr<TF_Tensor, DeleteTensor>;

/// One input of a running operation, and where its output goes.
struct Buffers {
  std::vector<std::int64_t> shape;
  DataType dtype = DataType::kFloat;
  Tensor input;   ///< null where the output has taken its memory over
  Tensor output;  ///< allreduce, broadcast: the output. Else room for a result of the expected shape, or null
  std::vector<std::int64_t> output_shape;

  const void* input_data() const { return tf.TensorData(input ? input.get() : output.get()); }
  void* output_data() const { return output ? tf.TensorData(output.get()) : nullptr; }
  std::int64_t output_bytes() const { return output ? static_cast<std::int64_t>(tf.TensorByteSize(output.get())) : 0; }
};

/// The dtype of a type that collectives support.
runjob_dtype to_dtype(DataType type);

/// Input `index`, without an output.
Buffers get_input(TF_OpKernelContext* context, int index, TF_Status* status);

/// Input `index` and an output of its shape, which is the input's own memory when nobody else needs that.
Buffers with_like_output(TF_OpKernelContext* context, int index, TF_Status* status);

/// Allocates a tensor for a result of `rows` rows, if there is memory for it. The number of rows is a guess, because it
/// may depend on the other ranks.
void make_room(TF_OpKernelContext* context, std::int64_t rows, Buffers& buffers);

/// Sets output `index` of the operation to the library's result: `buffers.output` itself if it has the shape, else a
/// copy.
void set_result(TF_OpKernelContext* context, int index, Buffers& buffers, const void* data,
                const std::vector<std::int64_t>& shape, TF_Status* status);

}  // namespace runjob::tensorflow
