#pragma once

/// Collectives on the memory of a GPU, for C++20: see runjob_submit().
///
///     const runjob::GpuCommunicator world({.device = 0, .stream = stream});
///     const runjob::Handle sum = world.allreduce_async(std::span(gradient, count), "gradient");
///     sum.wait_on_stream(stream);   // what is queued there from now on uses the sum

#include <runjob/runjob.hpp>

namespace runjob {
inline namespace v0 {

/// Submits any operation, as its struct describes it. The struct and its tensors are copied, and the buffers are lent
/// until the operation is done.
/// Errors  Error: those of runjob_submit().
inline Handle submit(const runjob_operation& operation) {
  runjob_handle handle = 0;
  detail::check(runjob_submit(&operation, &handle));
  return Handle(handle);
}

/// A GPU and a stream of the caller on it.
struct GpuStream {
  int device = 0;          ///< CUDA's ordinal
  void* stream = nullptr;  ///< a cudaStream_t; null is CUDA's default stream
};

/// The ranks that take part in collectives on a GPU's memory: all of the job, or those of a process set. Spans are of
/// that memory; the processor need not reach it. A value; cheap to copy.
///
/// Order    An operation begins when the work that the stream has at the call is done. The later work of a stream waits
///          for it after Handle::wait_on_stream().
/// Owner    The spans are lent until Handle::done() returns true. A Handle's destructor waits on the host for that, so
///          keep it as long as the GPU is at work, if the host is not to wait.
/// Threads  any.
/// Errors   Error: those of the arguments, from each function; those of the operation, from its Handle. See
///          runjob_submit().
class GpuCommunicator {
 public:
  explicit GpuCommunicator(GpuStream place, ProcessSet set = {}) : place_(place), set_(set) {}

  GpuStream place() const { return place_; }
  ProcessSet process_set() const { return set_; }

  /// As Communicator::allreduce_async().
  template <Element T>
  Handle allreduce_async(std::span<const T> in, std::span<T> out, const std::string& name, ReduceOp op = ReduceOp::sum,
                         Scaling scaling = {}) const {
    runjob_operation operation = described(RUNJOB_ALLREDUCE, name);
    set_reduction(operation, op, scaling);
    const std::int64_t extent = detail::same_size(name, in.size(), out.size());
    return Handle(start(operation, in.data(), out, std::span(&extent, 1)));
  }
  template <Element T>
  Handle allreduce_async(std::span<T> in_place, const std::string& name, ReduceOp op = ReduceOp::sum,
                         Scaling scaling = {}) const {
    return allreduce_async(std::span<const T>(in_place), in_place, name, op, scaling);
  }

  /// As Communicator::broadcast_async().
  template <Element T>
  Handle broadcast_async(std::span<T> buffer, int root, const std::string& name) const {
    runjob_operation operation = described(RUNJOB_BROADCAST, name);
    operation.root = root;
    const auto extent = static_cast<std::int64_t>(buffer.size());
    return Handle(start(operation, buffer.data(), buffer, std::span(&extent, 1)));
  }

  /// As Communicator::allgather_async(). A result for which `out` has no room lies on the GPU and belongs to the
  /// handle.
  template <Element T>
  GatherHandle<T> allgather_async(std::span<const T> in, const std::string& name, std::int64_t row = 1,
                                  std::span<T> out = {}) const {
    const auto shape = detail::rows("allgather", name, in.size(), row);
    return GatherHandle<T>(start(described(RUNJOB_ALLGATHER, name), in.data(), out, shape));
  }

  /// As Communicator::alltoall_async(); `splits` are on the host. The result as for allgather_async().
  template <Element T>
  GatherHandle<T> alltoall_async(std::span<const T> in, const std::string& name,
                                 std::span<const std::int64_t> splits = {}, std::int64_t row = 1,
                                 std::span<T> out = {}) const {
    runjob_operation operation = described(RUNJOB_ALLTOALL, name);
    operation.splits = splits.empty() ? nullptr : splits.data();
    operation.nsplits = static_cast<std::int32_t>(splits.size());
    return GatherHandle<T>(start(operation, in.data(), out, detail::rows("alltoall", name, in.size(), row)));
  }

  /// As Communicator::reducescatter_async(). The result as for allgather_async().
  template <Element T>
  GatherHandle<T> reducescatter_async(std::span<const T> in, const std::string& name, ReduceOp op = ReduceOp::sum,
                                      Scaling scaling = {}, std::int64_t row = 1, std::span<T> out = {}) const {
    runjob_operation operation = described(RUNJOB_REDUCESCATTER, name);
    set_reduction(operation, op, scaling);
    return GatherHandle<T>(start(operation, in.data(), out, detail::rows("reducescatter", name, in.size(), row)));
  }

 private:
  runjob_operation described(runjob_kind kind, const std::string& name) const {
    runjob_operation operation{};
    operation.size = sizeof operation;
    operation.name = name.c_str();
    operation.kind = kind;
    operation.count = 1;
    operation.prescale = operation.postscale = 1;
    operation.process_set = set_.id();
    operation.memory = RUNJOB_GPU_MEMORY;
    operation.device = place_.device;
    operation.stream = place_.stream;
    return operation;
  }

  static void set_reduction(runjob_operation& operation, ReduceOp op, Scaling scaling) {
    operation.op = static_cast<std::int32_t>(op);
    operation.prescale = scaling.prescale;
    operation.postscale = scaling.postscale;
  }

  /// `shape` has one extent or two; rows of one element are a tensor of one dimension.
  template <Element T>
  static runjob_handle start(runjob_operation operation, const T* in, std::span<T> out,
                             std::span<const std::int64_t> shape) {
    const bool is_flat = shape.size() == 1 || shape[1] == 1;
    const runjob_tensor tensor{in,           out.data(),      detail::bytes_of(out),
                               shape.data(), is_flat ? 1 : 2, detail::DTypeOf<T>::dtype};
    operation.tensors = &tensor;
    runjob_handle handle = 0;
    detail::check(runjob_submit(&operation, &handle));
    return handle;
  }

  GpuStream place_;
  ProcessSet set_;
};

}  // namespace v0
}  // namespace runjob
