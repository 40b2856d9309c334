#include "bindings/tensorflow/running_operation.hpp"

#include <algorithm>
#include <cstring>

namespace runjob::tensorflow {
namespace {

TfCode to_tf_code(runjob_code code) {
  switch (code) {
    case RUNJOB_OK:
      return TfCode::kOk;
    case RUNJOB_INVALID_ARGUMENT:
      return TfCode::kInvalidArgument;
    case RUNJOB_NOT_INITIALIZED:
    case RUNJOB_MISMATCH:
      return TfCode::kFailedPrecondition;
    case RUNJOB_ABORTED:
      return TfCode::kAborted;
    case RUNJOB_PEER_LOST:
    case RUNJOB_TIMEOUT:
    case RUNJOB_UNAVAILABLE:
    case RUNJOB_CONNECT:
    case RUNJOB_IN_PROGRESS:
    case RUNJOB_INTERNAL:
      return TfCode::kUnknown;
  }
  return TfCode::kUnknown;
}

/// The name of the exception that Python's other bindings raise for a lost rank or a stall, for
/// python/runjob/victims.py and for the reader: TensorFlow has no code of its own for them.
const char* kind_of_loss(runjob_code code) {
  switch (code) {
    case RUNJOB_ABORTED:
      return "AbortedError: ";
    case RUNJOB_PEER_LOST:
      return "PeerLostError: ";
    case RUNJOB_TIMEOUT:
      return "WaitTimeoutError: ";
    case RUNJOB_OK:
    case RUNJOB_INVALID_ARGUMENT:
    case RUNJOB_NOT_INITIALIZED:
    case RUNJOB_MISMATCH:
    case RUNJOB_UNAVAILABLE:
    case RUNJOB_CONNECT:
    case RUNJOB_IN_PROGRESS:
    case RUNJOB_INTERNAL:
      return "";
  }
  return "";
}

/// The iterations of a loop run at the same time, at most this many.
constexpr std::int64_t kIterationNames = 32;

}  // namespace

RunningOperation::RunningOperation(const Operation& operation, TF_OpKernelContext* context)
    : operation_(operation), context_(context) {}

runjob_handle RunningOperation::submit(double patience_seconds) {
  take_inputs();
  if (status_.ok()) {
    const bool is_patient = patience_seconds > 0 && is_small_allreduce();
    const runjob_code code = is_patient                    ? run_small_allreduce(patience_seconds)
                             : operation_.type->is_grouped ? start_group()
                                                           : start();
    if (code != RUNJOB_OK) set_failure(code);
  }
  if (status_.ok()) return handle_;
  tf.OpKernelContext_Failure(context_, status_.get());
  return 0;
}

void RunningOperation::end() {
  const runjob_code code = runjob_wait(handle_, 0);
  if (code == RUNJOB_OK) {
    set_outputs();
  } else {
    set_failure(code);
  }
  runjob_release(handle_);
  tensors_.clear();
  if (!status_.ok()) tf.OpKernelContext_Failure(context_, status_.get());
}

void RunningOperation::take_inputs() {
  int count = tf.NumInputs(context_);
  if (operation_.type->kind == Kind::kAlltoall) {
    take_splits();
    count = 1;
  }
  tensors_.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count && status_.ok(); ++i) take_input(i);
}

void RunningOperation::take_input(int index) {
  const Kind kind = operation_.type->kind;
  if (kind == Kind::kAllreduce || kind == Kind::kBroadcast) {
    tensors_.push_back(with_like_output(context_, index, status_.get()));
    const Buffers& buffers = tensors_.back();
    const bool is_root = kind == Kind::kBroadcast && operation_.root == runjob_rank();
    if (status_.ok() && is_root && buffers.input && buffers.output_bytes() != 0)
      std::memcpy(buffers.output_data(), buffers.input_data(), static_cast<std::size_t>(buffers.output_bytes()));
    return;
  }
  tensors_.push_back(get_input(context_, index, status_.get()));
  if (status_.ok() && !tensors_.back().shape.empty()) expect_rows(tensors_.back());
}

void RunningOperation::expect_rows(Buffers& buffers) {
  const int size = runjob_process_set_size(operation_.process_set);
  const int rank = runjob_process_set_rank(operation_.process_set);
  if (size <= 0 || rank < 0) return;  // which the library refuses
  const std::int64_t rows = buffers.shape.front();
  switch (operation_.type->kind) {
    case Kind::kAllgather:
      make_room(context_, rows * size, buffers);
      return;
    case Kind::kAlltoall:
      make_room(context_, rows, buffers);
      return;
    case Kind::kReducescatter:
      make_room(context_, rows / size + (rank < rows % size ? 1 : 0), buffers);
      return;
    case Kind::kAllreduce:
    case Kind::kBroadcast:
    case Kind::kJoin:
    case Kind::kBarrier:
      return;
  }
}

void RunningOperation::take_splits() {
  const Buffers given = get_input(context_, 1, status_.get());
  if (!status_.ok()) return;
  const auto* first = static_cast<const std::int32_t*>(given.input_data());
  const std::size_t count = tf.TensorByteSize(given.input.get()) / sizeof(*first);
  splits_.assign(first, first + count);
}

/// A loop's iterations run the same node at the same time.
std::string RunningOperation::wire_name() const {
  const std::int64_t iteration = tf.GetIterId(context_);
  if (iteration <= 0) return operation_.name;
  return operation_.name + ".iteration_" + std::to_string(iteration % kIterationNames);
}

bool RunningOperation::is_small_allreduce() const {
  constexpr std::int64_t kSmallBytes = 16384;
  return operation_.type->kind == Kind::kAllreduce && !operation_.type->is_grouped &&
         tensors_.front().output_bytes() <= kSmallBytes;
}

/// OK leaves no handle when it is over.
runjob_code RunningOperation::run_small_allreduce(double patience_seconds) {
  const Buffers& tensor = tensors_.front();
  const runjob_code code = runjob_compressed_allreduce(
      wire_name().c_str(), tensor.input_data(), tensor.output_data(), tensor.shape.data(),
      static_cast<std::int32_t>(tensor.shape.size()), to_dtype(tensor.dtype),
      static_cast<runjob_reduce_op>(operation_.reduce_op), operation_.prescale, operation_.postscale,
      static_cast<runjob_compression>(operation_.compression), operation_.process_set, patience_seconds, &handle_);
  return code == RUNJOB_IN_PROGRESS ? RUNJOB_OK : code;
}

runjob_code RunningOperation::start() {
  const std::string name = wire_name();
  const int set = operation_.process_set;
  if (operation_.type->kind == Kind::kJoin) return runjob_join_async(&handle_);
  if (operation_.type->kind == Kind::kBarrier) return runjob_barrier_async(name.c_str(), set, &handle_);
  const Buffers& tensor = tensors_.front();
  const std::int64_t* shape = tensor.shape.data();
  const auto ndim = static_cast<std::int32_t>(tensor.shape.size());
  const runjob_dtype dtype = to_dtype(tensor.dtype);
  const auto op = static_cast<runjob_reduce_op>(operation_.reduce_op);
  switch (operation_.type->kind) {
    case Kind::kAllreduce:
      return runjob_compressed_allreduce_async(name.c_str(), tensor.input_data(), tensor.output_data(), shape, ndim,
                                               dtype, op, operation_.prescale, operation_.postscale,
                                               static_cast<runjob_compression>(operation_.compression), set, &handle_);
    case Kind::kBroadcast:
      return runjob_broadcast_async(name.c_str(), tensor.output_data(), shape, ndim, dtype, operation_.root, set,
                                    &handle_);
    case Kind::kAllgather:
      return runjob_allgather_async(name.c_str(), tensor.input_data(), tensor.output_data(), tensor.output_bytes(),
                                    shape, ndim, dtype, set, &handle_);
    case Kind::kAlltoall:
      return runjob_alltoall_async(name.c_str(), tensor.input_data(), tensor.output_data(), tensor.output_bytes(),
                                   shape, ndim, splits_.empty() ? nullptr : splits_.data(),
                                   static_cast<std::int32_t>(splits_.size()), dtype, set, &handle_);
    case Kind::kReducescatter:
      return runjob_reducescatter_async(name.c_str(), tensor.input_data(), tensor.output_data(), tensor.output_bytes(),
                                        shape, ndim, dtype, op, operation_.prescale, operation_.postscale, set,
                                        &handle_);
    case Kind::kJoin:
    case Kind::kBarrier:
      break;
  }
  return RUNJOB_INTERNAL;
}

runjob_code RunningOperation::start_group() {
  const std::string name = wire_name();
  std::vector<runjob_tensor> group;
  group.reserve(tensors_.size());
  for (const Buffers& tensor : tensors_) {
    group.push_back({tensor.input_data(), tensor.output_data(), tensor.output_bytes(), tensor.shape.data(),
                     static_cast<std::int32_t>(tensor.shape.size()), to_dtype(tensor.dtype)});
  }
  const auto count = static_cast<std::int32_t>(group.size());
  const auto op = static_cast<runjob_reduce_op>(operation_.reduce_op);
  const int set = operation_.process_set;
  switch (operation_.type->kind) {
    case Kind::kAllreduce:
      return runjob_grouped_allreduce_async(name.c_str(), group.data(), count, op, operation_.prescale,
                                            operation_.postscale,
                                            static_cast<runjob_compression>(operation_.compression), set, &handle_);
    case Kind::kBroadcast:
      return runjob_grouped_broadcast_async(name.c_str(), group.data(), count, operation_.root, set, &handle_);
    case Kind::kAllgather:
      return runjob_grouped_allgather_async(name.c_str(), group.data(), count, set, &handle_);
    case Kind::kReducescatter:
      return runjob_grouped_reducescatter_async(name.c_str(), group.data(), count, op, operation_.prescale,
                                                operation_.postscale, set, &handle_);
    case Kind::kAlltoall:
    case Kind::kJoin:
    case Kind::kBarrier:
      break;
  }
  return RUNJOB_INTERNAL;
}

void RunningOperation::set_outputs() {
  const Kind kind = operation_.type->kind;
  if (kind == Kind::kAllreduce || kind == Kind::kBroadcast || kind == Kind::kBarrier) return;  // set already
  const void* data = nullptr;
  const std::int64_t* shape = nullptr;
  std::int32_t ndim = 0;
  if (operation_.type->is_grouped) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (runjob_grouped_output(handle_, static_cast<std::int32_t>(i), &data, &shape, &ndim) == RUNJOB_OK)
        set_output(i, data, shape, ndim);
    }
    return;
  }
  if (runjob_output(handle_, &data, &shape, &ndim) != RUNJOB_OK) return set_failure(RUNJOB_INTERNAL);
  if (kind == Kind::kJoin) {
    const std::int64_t last = *static_cast<const std::int32_t*>(data);
    return set_numbers(0, &last, 1, true);
  }
  set_output(0, data, shape, ndim);
  if (kind == Kind::kAlltoall) {
    const std::int64_t* splits = nullptr;
    std::int32_t count = 0;
    if (runjob_received_splits(handle_, &splits, &count) != RUNJOB_OK) return set_failure(RUNJOB_INTERNAL);
    set_numbers(1, splits, static_cast<std::size_t>(count), false);
  }
}

void RunningOperation::set_output(std::size_t index, const void* data, const std::int64_t* shape, std::int32_t ndim) {
  set_result(context_, static_cast<int>(index), tensors_[index], data, {shape, shape + ndim}, status_.get());
}

void RunningOperation::set_numbers(int index, const std::int64_t* values, std::size_t count, bool is_scalar) {
  const auto extent = static_cast<std::int64_t>(count);
  const Tensor output(tf.AllocateOutput(context_, index, DataType::kInt32, &extent, is_scalar ? 0 : 1,
                                        count * sizeof(std::int32_t), status_.get()));
  if (status_.ok()) std::copy_n(values, count, static_cast<std::int32_t*>(tf.TensorData(output.get())));
}

void RunningOperation::set_failure(runjob_code code) {
  status_.set(to_tf_code(code),
              std::string(operation_.type->name) + ": " + kind_of_loss(code) + runjob_error_message());
}

}  // namespace runjob::tensorflow
