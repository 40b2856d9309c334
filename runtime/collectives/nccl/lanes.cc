#include "runtime/collectives/nccl/lanes.hpp"

#include <algorithm>
#include <utility>

namespace runjob::runtime::nccl {

Lanes::Lanes(const Library& library, cuda::Gpu& gpu, cuda::Stream first, std::vector<UniqueId> ids, int rank, int size)
    : library_(library), gpu_(gpu), ids_(std::move(ids)) {
  for (std::size_t lane = 0; lane < ids_.size(); ++lane) {
    const cuda::Stream stream = lane == 0 ? first : SharedGpu::of(gpu_).take_stream(false);
    communicators_.push_back(std::make_unique<Communicator>(library_, gpu_, stream, rank, size));
  }
}

/// A communicator that was stopped may have left work on its stream.
Lanes::~Lanes() {
  for (std::size_t lane = 0; lane < communicators_.size(); ++lane) {
    const cuda::Stream stream = communicators_[lane]->stream();
    const bool is_idle = !communicators_[lane]->handle()->is_stopping;
    communicators_[lane].reset();
    if (lane > 0) SharedGpu::of(gpu_).give_back(stream, is_idle);
  }
}

void Lanes::set_up(std::chrono::milliseconds timeout, const std::function<bool()>& is_given_up) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + timeout;
  for (std::size_t lane = 0; lane < ids_.size(); ++lane) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    communicators_[lane]->set_up(ids_[lane], std::max(left, std::chrono::milliseconds(0)), is_given_up);
  }
}

Communicator& Lanes::next() {
  return *communicators_[turn_++ % communicators_.size()];
}

std::vector<cuda::Stream> Lanes::streams() const {
  std::vector<cuda::Stream> streams;
  for (const auto& each : communicators_) streams.push_back(each->stream());
  return streams;
}

void Lanes::check_health() const {
  for (const auto& each : communicators_) each->check_health();
}

void Lanes::stop() {
  SharedGpu::Handles handles;
  for (const auto& each : communicators_) handles.push_back(each->handle());
  SharedGpu::of(gpu_).stop(library_, std::move(handles), {});
}

}  // namespace runjob::runtime::nccl
