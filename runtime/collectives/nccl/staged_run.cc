#include "runtime/collectives/nccl/staged_run.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace runjob::runtime::nccl {
namespace {

using cuda::check;
using cuda::driver;

cuda::Address address(const void* memory) {
  return reinterpret_cast<cuda::Address>(memory);
}

/// The number of values of the result.
std::size_t result_count(const Call& call, int rank) {
  if (call.kind == Kind::kReducescatter) return call.counts[static_cast<std::size_t>(rank)];
  if (call.kind == Kind::kAllreduce || call.kind == Kind::kBroadcast) return call.count;
  return std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0});
}

}  // namespace

StagedRun::~StagedRun() {
  if (memory_ == nullptr) return;
  try {
    const cuda::CurrentGpu current(gpu_);
    driver().host_free(memory_);
  } catch (const Error&) {  // the driver is gone with the process
  }
}

std::byte* StagedRun::room(std::size_t bytes) {
  if (bytes > bytes_) {
    if (memory_ != nullptr) check(driver().host_free(memory_), "freeing pinned memory");
    memory_ = nullptr;
    bytes_ = 0;
    check(driver().host_allocate(&memory_, bytes, 0), "allocating pinned memory");
    bytes_ = bytes;
  }
  return static_cast<std::byte*>(memory_);
}

Status StagedRun::run(const Call& call) {
  const std::size_t element = size_of(call.dtype), in = call.count * element;
  const std::size_t out = result_count(call, rank_) * element;
  const bool is_in_place = call.kind == Kind::kAllreduce || call.kind == Kind::kBroadcast;
  const bool reads = call.kind != Kind::kBroadcast || call.root == rank_;
  const bool writes = call.kind != Kind::kBroadcast || call.root != rank_;
  check(driver().stream_synchronize(stream_), "waiting for the last copies");
  std::byte* const memory = room(std::max<std::size_t>(1, is_in_place ? in : in + out));
  if (reads && in != 0) {
    check(driver().copy_to_host(memory, address(call.input), in, stream_), "copying a tensor to the host");
    check(driver().stream_synchronize(stream_), "copying a tensor to the host");
  }
  Call on_host = call;
  on_host.memory = {};
  on_host.work = nullptr;
  on_host.input = memory;
  on_host.output = is_in_place ? memory : memory + in;
  Status status = host_.run(on_host);
  if (!status.ok() || !writes || out == 0) return status;
  check(driver().copy_to_device(address(call.output), on_host.output, out, stream_), "copying a result to the GPU");
  return status;
}

}  // namespace runjob::runtime::nccl
