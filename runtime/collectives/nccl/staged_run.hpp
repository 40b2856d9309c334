#pragma once

#include <cstddef>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/cuda/gpu.hpp"

namespace runjob::runtime::nccl {

/// Runs calls on tensors of a GPU through the host: copies the input into pinned memory, runs the call there on a
/// backend of the host, and copies the result back. For calls that NCCL cannot run.
/// Threads  one.
class StagedRun {
 public:
  /// `host` is lent. Copies go over `stream`.
  StagedRun(DataBackend& host, cuda::Gpu& gpu, cuda::Stream stream, int rank)
      : host_(host), gpu_(gpu), stream_(stream), rank_(rank) {}
  ~StagedRun();
  StagedRun(const StagedRun&) = delete;
  StagedRun& operator=(const StagedRun&) = delete;

  /// Blocks until the result is being copied to the GPU. The GPU must be current.
  /// Errors  Error(kDevice); values: the host backend's.
  Status run(const Call& call);

 private:
  std::byte* room(std::size_t bytes);

  DataBackend& host_;
  cuda::Gpu& gpu_;
  const cuda::Stream stream_;
  const int rank_;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace runjob::runtime::nccl
