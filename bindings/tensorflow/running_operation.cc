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
    const runjob_code code = start(patience_seconds);
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
runjob_code RunningOperation::start(double patience_seconds) {
  const std::string name = wire_name();
  std::vector<runjob_tensor> tensors;
  tensors.reserve(tensors_.size());
  for (const Buffers& tensor : tensors_) {
    tensors.push_back({tensor.input_data(), tensor.output_data(), tensor.output_bytes(), tensor.shape.data(),
                       static_cast<std::int32_t>(tensor.shape.size()), to_dtype(tensor.dtype)});
  }
  runjob_operation operation{};
  operation.size = sizeof operation;
  operation.name = name.c_str();
  operation.kind = static_cast<std::int32_t>(operation_.type->kind);
  operation.count = static_cast<std::int32_t>(tensors.size());
  operation.tensors = tensors.data();
  operation.is_group = operation_.type->is_grouped ? 1 : 0;
  operation.op = operation_.reduce_op;
  operation.prescale = operation_.prescale;
  operation.postscale = operation_.postscale;
  operation.compression = operation_.compression;
  operation.root = operation_.root;
  operation.process_set = operation_.process_set;
  operation.nsplits = static_cast<std::int32_t>(splits_.size());
  operation.splits = splits_.empty() ? nullptr : splits_.data();
  if (!(patience_seconds > 0 && is_small_allreduce())) return runjob_submit(&operation, &handle_);
  const runjob_code code = runjob_run(&operation, patience_seconds, &handle_);
  return code == RUNJOB_IN_PROGRESS ? RUNJOB_OK : code;
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
