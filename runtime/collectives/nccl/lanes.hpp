#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/collectives/cuda/gpu.hpp"
#include "runtime/collectives/nccl/communicator.hpp"

namespace runjob::runtime::nccl {

/// The streams on which a backend's collectives run in turn, each with a communicator of its own, so that several
/// collectives can be in progress on the GPU at once.
/// Order    All ranks call next() for the same calls, in the same order. A call has the same communicator on all of
///          them then. Among several streams NCCL keeps the order of the launches: see stream_objection().
/// Owner    the communicators, and all streams but the first one, which is lent.
/// Threads  one at a time, except that check_health() and stop() may be called by any.
class Lanes {
 public:
  /// One lane for each of `ids`, which are the same on all ranks; `first` is the stream of the first one.
  Lanes(const Library& library, cuda::Gpu& gpu, cuda::Stream first, std::vector<UniqueId> ids, int rank, int size);
  /// Destroys the communicators, and gives the streams back.
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// Connects all ranks, within `timeout` for all lanes together.
  /// Errors  those of Communicator::set_up().
  void set_up(std::chrono::milliseconds timeout, const std::function<bool()>& is_given_up);
  /// The lane of the next call.
  Communicator& next();
  /// The stream of each lane.
  std::vector<cuda::Stream> streams() const;
  /// Errors  those of Communicator::check_health().
  void check_health() const;
  /// Ends NCCL's kernels of these communicators alone, and frees their memory: see SharedGpu.
  void stop();

 private:
  const Library& library_;
  cuda::Gpu& gpu_;
  const std::vector<UniqueId> ids_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::size_t turn_ = 0;
};

}  // namespace runjob::runtime::nccl
