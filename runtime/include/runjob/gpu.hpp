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
  return Handle(detail::submit(operation));
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
    const std::int64_t extent = detail::same_size(name, in.size(), out.size());
    return Handle(
        start(detail::reduction(RUNJOB_ALLREDUCE, name, set_.id(), op, scaling), in, out, std::span(&extent, 1)));
  }
  template <Element T>
  Handle allreduce_async(std::span<T> in_place, const std::string& name, ReduceOp op = ReduceOp::sum,
                         Scaling scaling = {}) const {
    return allreduce_async(std::span<const T>(in_place), in_place, name, op, scaling);
  }

  /// As Communicator::broadcast_async().
  template <Element T>
  Handle broadcast_async(std::span<T> buffer, int root, const std::string& name) const {
    runjob_operation operation = detail::described(RUNJOB_BROADCAST, name, set_.id());
    operation.root = root;
    const auto extent = static_cast<std::int64_t>(buffer.size());
    return Handle(start(operation, std::span<const T>(buffer), buffer, std::span(&extent, 1)));
  }

  /// As Communicator::allgather_async(). A result for which `out` has no room lies on the GPU and belongs to the
  /// handle.
  template <Element T>
  GatherHandle<T> allgather_async(std::span<const T> in, const std::string& name, std::int64_t row = 1,
                                  std::span<T> out = {}) const {
    const auto shape = detail::rows("allgather", name, in.size(), row);
    return GatherHandle<T>(start(detail::described(RUNJOB_ALLGATHER, name, set_.id()), in, out, shape));
  }

  /// As Communicator::alltoall_async(); `splits` are on the host. The result as for allgather_async().
  template <Element T>
  GatherHandle<T> alltoall_async(std::span<const T> in, const std::string& name,
                                 std::span<const std::int64_t> splits = {}, std::int64_t row = 1,
                                 std::span<T> out = {}) const {
    return GatherHandle<T>(
        start(detail::alltoall(name, set_.id(), splits), in, out, detail::rows("alltoall", name, in.size(), row)));
  }

  /// As Communicator::reducescatter_async(). The result as for allgather_async().
  template <Element T>
  GatherHandle<T> reducescatter_async(std::span<const T> in, const std::string& name, ReduceOp op = ReduceOp::sum,
                                      Scaling scaling = {}, std::int64_t row = 1, std::span<T> out = {}) const {
    return GatherHandle<T>(start(detail::reduction(RUNJOB_REDUCESCATTER, name, set_.id(), op, scaling), in, out,
                                 detail::rows("reducescatter", name, in.size(), row)));
  }

 private:
  template <Element T>
  runjob_handle start(runjob_operation operation, std::span<const T> in, std::span<T> out,
                      std::span<const std::int64_t> shape) const {
    operation.memory = RUNJOB_GPU_MEMORY;
    operation.device = place_.device;
    operation.stream = place_.stream;
    return detail::submit(operation, detail::tensor_of(in, out, shape));
  }

  GpuStream place_;
  ProcessSet set_;
};

}  // namespace v0
}  // namespace runjob
