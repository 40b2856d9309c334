#include "runtime/collectives/nccl/communicator.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/collectives/nccl/bounded_call.hpp"
#include "runtime/collectives/packing.hpp"

namespace runjob::runtime::nccl {
namespace {

const std::byte* at(const void* memory, std::size_t values, DType dtype) {
  return static_cast<const std::byte*>(memory) + values * size_of(dtype);
}

std::byte* at(void* memory, std::size_t values, DType dtype) {
  return static_cast<std::byte*>(memory) + values * size_of(dtype);
}

/// Writes `factor` as one element of `dtype`, a type of floats.
void write_factor(DataType dtype, double factor, std::byte* out) {
  const auto single = static_cast<float>(factor);
  switch (dtype) {
    case kFloat64:
      std::memcpy(out, &factor, sizeof factor);
      return;
    case kFloat32:
      std::memcpy(out, &single, sizeof single);
      return;
    case kFloat16:
      return convert(DType::kFloat16, out, DType::kFloat64, &factor, 1, 1);
    case kBfloat16:
      return convert(DType::kBfloat16, out, DType::kFloat64, &factor, 1, 1);
    case kInt8:
    case kUint8:
    case kInt32:
    case kInt64:
      break;
  }
  throw Error(Errc::kBug, fmt::format("a sum with a factor in NCCL's type {}", static_cast<int>(dtype)));
}

/// A number of elements, of `count` that are left, that each block of NCCL's kernel for one rank has equally many of.
/// The kernel has a block for each 16 KiB, and at most 32 blocks.
std::size_t equal_parts(std::size_t count, std::size_t element_bytes) {
  constexpr std::size_t kBlock = 16 << 10, kBlocks = 32;
  const std::size_t bytes = count * element_bytes;
  if (bytes <= kBlock) return count;
  const std::size_t unit = bytes < kBlocks * kBlock ? kBlock : kBlocks * kBlock;
  return bytes / unit * unit / element_bytes;
}

}  // namespace

Communicator::Communicator(const Library& library, cuda::Gpu& gpu, cuda::Stream stream, int rank, int size)
    : library_(library), gpu_(gpu), stream_(stream), rank_(rank), size_(size) {
  SharedGpu::of(gpu_).add(handle_);
}

Communicator::~Communicator() {
  SharedGpu::of(gpu_).remove(handle_);
  if (handle_->is_stopping.exchange(true) || handle_->is_stopped.exchange(true) || handle_->comm == nullptr) return;
  const auto destroy = [&library = library_, &gpu = gpu_, handle = handle_] {
    try {
      const cuda::CurrentGpu current(gpu);
      library.destroy(handle->comm);
    } catch (const Error&) {  // the driver is gone with the process
    }
  };
  run_bounded("runjob-nccl", kRetireTime, destroy);
}

void Communicator::set_up(const UniqueId& id, std::chrono::milliseconds timeout,
                          const std::function<bool()>& is_given_up) {
  const auto connect = [&library = library_, &gpu = gpu_, handle = handle_, id, rank = rank_, size = size_] {
    try {
      const cuda::CurrentGpu current(gpu);
      handle->result = library.init_rank(&handle->comm, size, id, rank);
    } catch (const Error&) {
      handle->result = -1;
    }
  };
  if (run_bounded("runjob-nccl", timeout, connect, is_given_up)) {
    if (handle_->result != kSuccess) handle_->is_stopped = true;
    return check(library_, handle_->result, "connecting the GPUs");
  }
  stop();
  if (is_given_up()) throw Error(Errc::kAborted, "connecting the GPUs was ended");
  throw Error(Errc::kTimeout,
              fmt::format("NCCL has not connected the GPUs of {} ranks within {:.3g} s; NCCL_DEBUG=INFO "
                          "shows how far it came",
                          size_, std::chrono::duration<double>(timeout).count()));
}

void Communicator::stop() {
  SharedGpu::of(gpu_).stop(library_, {handle_}, {});
}

void Communicator::launch(const Call& call, const Terms& terms) {
  if (handle_->is_stopped) throw Error(Errc::kAborted, "the communicator of the GPUs has been stopped");
  const std::size_t count = call.count * terms.per_value;
  if (size_ == 1 && terms.factor != 1) return scale(call, terms);
  switch (call.kind) {
    case Kind::kAllreduce:
      return check(
          library_,
          library_.all_reduce(call.input, call.output, count, terms.dtype, op_of(terms), handle_->comm, stream_),
          "ncclAllReduce()", handle_->comm);
    case Kind::kBroadcast:
      return check(library_,
                   library_.broadcast(call.output, call.output, count, terms.dtype, call.root, handle_->comm, stream_),
                   "ncclBroadcast()", handle_->comm);
    case Kind::kAllgather:
      return allgather(call, terms);
    case Kind::kReducescatter:
      return reducescatter(call, terms);
    case Kind::kAlltoall:
      return alltoall(call, terms);
    case Kind::kBarrier:
    case Kind::kJoin:
      return;
  }
}

void Communicator::launch_together(std::span<const Call> calls, const Terms& terms) {
  if (handle_->is_stopped) throw Error(Errc::kAborted, "the communicator of the GPUs has been stopped");
  if (size_ == 1) {  // nothing is gained from a group
    for (const Call& call : calls) launch(call, terms);
    return;
  }
  const RedOp op = op_of(terms);
  run_group("several of ncclAllReduce()", static_cast<int>(calls.size()), [&](int number) {
    const Call& call = calls[static_cast<std::size_t>(number)];
    return library_.all_reduce(call.input, call.output, call.count * terms.per_value, terms.dtype, op, handle_->comm,
                               stream_);
  });
}

/// Queues what `issue` gives for each number below `count`, as one operation of NCCL. Stops at the first call that
/// fails. `what` is the operation, for the error's text.
template <class Issue>
void Communicator::run_group(const char* what, int count, Issue issue) {
  check(library_, library_.group_start(), "ncclGroupStart()", handle_->comm);
  Result result = kSuccess;
  for (int number = 0; number < count && result == kSuccess; ++number) result = issue(number);
  const Result ended = library_.group_end();
  check(library_, result == kSuccess ? ended : result, what, handle_->comm);
}

/// A reduction of one rank with a factor: its values, multiplied. Before NCCL 2.29.7 the last values of a call are left
/// out when the blocks of its kernel have not equally many: see github.com/NVIDIA/nccl/issues/1950.
void Communicator::scale(const Call& call, const Terms& terms) {
  const RedOp op = op_of(terms);
  for (std::size_t place = 0, part = 0; place < call.count; place += part) {
    part = equal_parts(call.count - place, size_of(call.dtype));
    check(library_,
          library_.all_reduce(at(call.input, place, call.dtype), at(call.output, place, call.dtype), part, terms.dtype,
                              op, handle_->comm, stream_),
          "ncclAllReduce() in one rank", handle_->comm);
  }
}

/// Parts of different sizes are broadcasts, which NCCL runs as one.
void Communicator::allgather(const Call& call, const Terms& terms) {
  const Comm comm = handle_->comm;
  if (std::adjacent_find(call.counts.begin(), call.counts.end(), std::not_equal_to<>()) == call.counts.end()) {
    return check(library_,
                 library_.all_gather(call.input, call.output, call.count * terms.per_value, terms.dtype, comm, stream_),
                 "ncclAllGather()", comm);
  }
  std::size_t place = 0;
  run_group("an allgather as ncclBroadcast()", size_, [&](int rank) {
    const std::size_t count = call.counts[static_cast<std::size_t>(rank)];
    std::byte* const part = at(call.output, std::exchange(place, place + count), call.dtype);
    if (count == 0) return kSuccess;
    return library_.broadcast(rank == rank_ ? call.input : part, part, count * terms.per_value, terms.dtype, rank, comm,
                              stream_);
  });
}

/// Parts of different sizes are reductions to one rank each.
void Communicator::reducescatter(const Call& call, const Terms& terms) {
  const Comm comm = handle_->comm;
  const RedOp op = op_of(terms);
  if (std::adjacent_find(call.counts.begin(), call.counts.end(), std::not_equal_to<>()) == call.counts.end()) {
    return check(library_,
                 library_.reduce_scatter(call.input, call.output, call.counts.front() * terms.per_value, terms.dtype,
                                         op, comm, stream_),
                 "ncclReduceScatter()", comm);
  }
  std::size_t place = 0;
  run_group("a reducescatter as ncclReduce()", size_, [&](int rank) {
    const std::size_t count = call.counts[static_cast<std::size_t>(rank)];
    const std::byte* const part = at(call.input, std::exchange(place, place + count), call.dtype);
    if (count == 0) return kSuccess;
    return library_.reduce(part, call.output, count * terms.per_value, terms.dtype, op, rank, comm, stream_);
  });
}

void Communicator::alltoall(const Call& call, const Terms& terms) {
  const Comm comm = handle_->comm;
  std::size_t from = 0, to = 0;
  run_group("an alltoall as ncclSend() and ncclRecv()", size_, [&](int rank) {
    const std::size_t sent = call.send_counts[static_cast<std::size_t>(rank)];
    const std::size_t received = call.counts[static_cast<std::size_t>(rank)];
    const std::byte* const own = at(call.input, std::exchange(from, from + sent), call.dtype);
    std::byte* const others = at(call.output, std::exchange(to, to + received), call.dtype);
    Result result = kSuccess;
    if (sent != 0) result = library_.send(own, sent * terms.per_value, terms.dtype, rank, comm, stream_);
    if (received != 0 && result == kSuccess)
      result = library_.receive(others, received * terms.per_value, terms.dtype, rank, comm, stream_);
    return result;
  });
}

RedOp Communicator::op_of(const Terms& terms) {
  if (terms.factor == 1) return terms.op;
  const auto [found, is_new] = scaled_sums_.try_emplace({terms.dtype, terms.factor}, kSum);
  if (!is_new) return found->second;
  std::byte factor[sizeof(double)];
  write_factor(terms.dtype, terms.factor, factor);
  const Result result = library_.make_scaled_sum(&found->second, factor, terms.dtype, kHostImmediate, handle_->comm);
  if (result != kSuccess) scaled_sums_.erase(found);
  check(library_, result, "making a sum with a factor", handle_->comm);
  return scaled_sums_.at({terms.dtype, terms.factor});
}

void Communicator::check_health() const {
  if (!gpu_.launch_mutex().try_lock()) return;
  const std::lock_guard lock(gpu_.launch_mutex(), std::adopt_lock);
  if (handle_->is_stopped) return;
  Result error = kSuccess;
  check(library_, library_.async_error(handle_->comm, &error), "asking NCCL for errors", handle_->comm);
  if (error != kInProgress) check(library_, error, "a collective on the GPU", handle_->comm);
}

}  // namespace runjob::runtime::nccl
