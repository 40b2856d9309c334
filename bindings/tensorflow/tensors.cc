#include "bindings/tensorflow/tensors.hpp"

#include <cstring>

#include "bindings/tensorflow/dtypes.hpp"
#include "bindings/tensorflow/status.hpp"

namespace runjob::tensorflow {
namespace {

std::size_t bytes_of(DataType type, const std::vector<std::int64_t>& shape) {
  std::size_t bytes = row_of(type).size;
  for (const std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

}  // namespace

runjob_dtype to_dtype(DataType type) {
  return row_of(type).dtype;
}

Buffers get_input(TF_OpKernelContext* context, int index, TF_Status* status) {
  Buffers buffers;
  TF_Tensor* tensor = nullptr;
  tf.GetInput(context, index, &tensor, status);
  if (tf.GetCode(status) != TfCode::kOk) return buffers;
  buffers.input.reset(tensor);
  buffers.dtype = tf.TensorType(tensor);
  for (int i = 0; i < tf.NumDims(tensor); ++i) buffers.shape.push_back(tf.Dim(tensor, i));
  return buffers;
}

Buffers with_like_output(TF_OpKernelContext* context, int index, TF_Status* status) {
  Buffers buffers = get_input(context, index, status);
  if (tf.GetCode(status) != TfCode::kOk) return buffers;
  buffers.input.reset();  // TensorFlow gives memory on only when nobody else holds it
  int forwarded = -1;
  buffers.output.reset(tf.ForwardInputOrAllocateOutput(context, &index, 1, index, buffers.shape.data(),
                                                       static_cast<int>(buffers.shape.size()), &forwarded, status));
  if (tf.GetCode(status) == TfCode::kOk && forwarded < 0) {
    TF_Tensor* tensor = nullptr;
    tf.GetInput(context, index, &tensor, status);
    buffers.input.reset(tensor);
  }
  return buffers;
}

void make_room(TF_OpKernelContext* context, std::int64_t rows, Buffers& buffers) {
  buffers.output_shape = buffers.shape;
  buffers.output_shape.front() = rows;
  TF_AllocatorAttributes attributes{sizeof(TF_AllocatorAttributes), 1};
  const TfStatus status;
  Tensor room(tf.AllocateTemp(context, buffers.dtype, buffers.output_shape.data(),
                              static_cast<int>(buffers.output_shape.size()), &attributes, status.get()));
  if (status.ok()) buffers.output = std::move(room);
}

void set_result(TF_OpKernelContext* context, int index, Buffers& buffers, const void* data,
                const std::vector<std::int64_t>& shape, TF_Status* status) {
  if (buffers.output && shape == buffers.output_shape) {
    tf.SetOutput(context, index, buffers.output.get(), status);
    return;
  }
  const std::size_t bytes = bytes_of(buffers.dtype, shape);
  const Tensor output(
      tf.AllocateOutput(context, index, buffers.dtype, shape.data(), static_cast<int>(shape.size()), bytes, status));
  if (tf.GetCode(status) == TfCode::kOk && bytes != 0) std::memcpy(tf.TensorData(output.get()), data, bytes);
}

}  // namespace runjob::tensorflow
