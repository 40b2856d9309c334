#pragma once

#include <cstring>
#include <runjob/runjob.h>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/collectives/cuda/gpu.hpp"
#include "tests/runtime/calls.hpp"

/// Tensors on a GPU, and operations on them through the C interface, as a user of CUDA has them.
namespace runjob::runtime {

/// A stream of the caller on this rank's GPU.
class UserStream {
 public:
  explicit UserStream(int ordinal) : gpu_(cuda::Gpu::of(ordinal)), stream_(gpu_.take_stream()) {}
  ~UserStream() { gpu_.give_back(stream_); }
  UserStream(const UserStream&) = delete;
  UserStream& operator=(const UserStream&) = delete;

  cuda::Gpu& gpu() const { return gpu_; }
  cuda::Stream get() const { return stream_; }
  void synchronize() const {
    const cuda::CurrentGpu current(gpu_);
    cuda::check(cuda::driver().stream_synchronize(stream_), "waiting for a stream");
  }

 private:
  cuda::Gpu& gpu_;
  const cuda::Stream stream_;
};

/// Elements in a GPU's memory. What it does is work of its stream.
template <class T>
class GpuTensor {
 public:
  GpuTensor(const UserStream& stream, const std::vector<T>& values) : stream_(stream), count_(values.size()) {
    const cuda::CurrentGpu current(stream.gpu());
    cuda::check(cuda::driver().memory_allocate(&address_, std::max<std::size_t>(1, count_ * sizeof(T))), "allocating");
    host_ = values;
    if (count_ == 0) return;
    cuda::check(cuda::driver().copy_to_device(address_, host_.data(), count_ * sizeof(T), stream.get()), "copying");
  }
  ~GpuTensor() {
    stream_.synchronize();
    const cuda::CurrentGpu current(stream_.gpu());
    cuda::driver().memory_free(address_);
  }
  GpuTensor(const GpuTensor&) = delete;
  GpuTensor& operator=(const GpuTensor&) = delete;

  void* get() const { return reinterpret_cast<void*>(address_); }
  std::size_t bytes() const { return count_ * sizeof(T); }
  std::vector<T> values() const { return read(stream_, get(), count_); }

  /// Elements at any address of the GPU.
  static std::vector<T> read(const UserStream& stream, const void* from, std::size_t count) {
    std::vector<T> values(count);
    if (count == 0) return values;
    const cuda::CurrentGpu current(stream.gpu());
    cuda::check(cuda::driver().copy_to_host(values.data(), reinterpret_cast<cuda::Address>(from), count * sizeof(T),
                                            stream.get()),
                "copying");
    stream.synchronize();
    return values;
  }

 private:
  const UserStream& stream_;
  const std::size_t count_;
  cuda::Address address_ = 0;
  std::vector<T> host_;
};

/// An operation on tensors of the stream's GPU.
inline runjob_operation gpu_operation(const char* name, runjob_kind kind, const runjob_tensor& tensor,
                                      const UserStream& stream) {
  runjob_operation operation{};
  operation.size = sizeof operation;
  operation.name = name;
  operation.kind = kind;
  operation.count = 1;
  operation.tensors = &tensor;
  operation.op = RUNJOB_SUM;
  operation.prescale = operation.postscale = 1;
  operation.memory = RUNJOB_GPU_MEMORY;
  operation.device = stream.gpu().ordinal();
  operation.stream = stream.get();
  return operation;
}

inline runjob_handle start(const runjob_operation& operation) {
  runjob_handle handle = 0;
  check(runjob_submit(&operation, &handle));
  return handle;
}

/// Submits, and makes the stream wait: no thread waits for the GPU.
inline void run_on(const UserStream& stream, const runjob_operation& operation) {
  const runjob_handle handle = start(operation);
  check(runjob_wait_on_stream(handle, stream.get(), -1));
  runjob_release(handle);
}

}  // namespace runjob::runtime
