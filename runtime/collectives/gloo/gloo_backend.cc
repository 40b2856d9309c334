#include "runtime/collectives/gloo/gloo_backend.hpp"

#include <utility>

#include <fmt/format.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/broadcast.h>

#include "base/error.hpp"
#include "runtime/collectives/allreduce_stages.hpp"
#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/rank_order_reduction.hpp"
#include "runtime/collectives/reduce.hpp"

namespace runjob::runtime {
namespace {

/// Below this size the few steps of BCUBE take less time than the few bytes of the ring.
constexpr std::size_t kRingBytes = 32u << 10;

/// A type of this size: Gloo takes the size of elements from a type, and uses nothing else of it.
template <class T>
void set_output(gloo::AllreduceOptions& options, void* data, std::size_t count) {
  options.setOutput(static_cast<T*>(data), count);
}

void set_output(gloo::AllreduceOptions& options, void* data, std::size_t count, std::size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return set_output<std::uint8_t>(options, data, count);
    case 2:
      return set_output<std::uint16_t>(options, data, count);
    case 4:
      return set_output<std::uint32_t>(options, data, count);
    default:
      return set_output<std::uint64_t>(options, data, count);
  }
}

}  // namespace

GlooBackend::GlooBackend(const MeshOptions& options, std::unique_ptr<Transport> transport)
    : options_(options),
      transport_(std::move(transport)),
      context_(std::make_shared<GlooContext>(options.rank, options.size, *transport_)) {}

Status GlooBackend::connect(const std::vector<std::string>& addresses) {
  return kept(transport_->connect(addresses));
}

void GlooBackend::abort(const Status& why) {
  static_cast<void>(kept(why));
  transport_->abort();
}

/// Returns the first failure, which explains the later ones.
Status GlooBackend::kept(const Status& status) {
  const MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = status;
  return failure_;
}

Status GlooBackend::run(const Call& call) {
  if (const Status failure = kept({}); !failure.ok()) return failure;
  try {
    switch (call.kind) {
      case Kind::kAllreduce:
        allreduce(call);
        break;
      case Kind::kAllgather:
        allgather(call);
        break;
      case Kind::kBroadcast:
        broadcast(call);
        break;
      case Kind::kAlltoall:
        call.tell_stage("GLOO_ALLTOALL", nullptr);
        exchange(call.input, call.send_counts, call.output, call.counts, size_of(call.dtype));
        break;
      case Kind::kReducescatter:
        reducescatter(call);
        break;
      case Kind::kBarrier:
      case Kind::kJoin:
        break;
    }
    return {};
  } catch (const Error& error) {
    return kept(Status(error.code(), fmt::format("Gloo, {}: {}", to_string(call.kind), error.what())));
  } catch (const std::exception& error) {
    return kept(Status(Errc::kSystem, fmt::format("Gloo, {}: {}", to_string(call.kind), error.what())));
  }
}

void GlooBackend::allreduce(const Call& call) {
  AllreduceStages stages(call, options_.size);
  const bool is_ring = stages.bytes() >= kRingBytes;
  call.tell_stage("GLOO_ALLREDUCE", is_ring ? "ring" : "bcube");
  gloo::AllreduceOptions options(context_);
  set_output(options, stages.data(), call.count, size_of(stages.dtype()));
  options.setReduceFunction(reduce_function(stages.dtype(), call.op));
  options.setTag(tag_++);
  options.setAlgorithm(is_ring ? gloo::AllreduceOptions::Algorithm::RING : gloo::AllreduceOptions::Algorithm::BCUBE);
  gloo::allreduce(options);
  stages.finish();
}

void GlooBackend::allgather(const Call& call) {
  call.tell_stage("GLOO_ALLGATHER", nullptr);
  const std::size_t element_bytes = size_of(call.dtype);
  std::vector<std::size_t> bytes;
  std::size_t before = 0;
  for (std::size_t rank = 0; rank < call.counts.size(); ++rank) {
    bytes.push_back(call.counts[rank] * element_bytes);
    if (rank < static_cast<std::size_t>(options_.rank)) before += bytes.back();
  }
  auto* output = static_cast<std::uint8_t*>(call.output);
  copy_bytes(output + before, call.input, call.count * element_bytes);
  gloo::AllgathervOptions options(context_);
  options.setOutput(output, bytes);
  options.setTag(tag_++);
  gloo::allgatherv(options);
}

void GlooBackend::broadcast(const Call& call) {
  call.tell_stage("GLOO_BCAST", nullptr);
  gloo::BroadcastOptions options(context_);
  options.setOutput(static_cast<std::uint8_t*>(call.output), call.count * size_of(call.dtype));
  options.setRoot(call.root);
  options.setTag(tag_++);
  gloo::broadcast(options);
}

/// Each rank sends every other rank that rank's part of the input, and reduces the parts that it gets: Gloo of 2022 has
/// no reduce-scatter. A rank sends and receives (p-1)/p of the tensor, the fewest bytes that are possible.
void GlooBackend::reducescatter(const Call& call) {
  call.tell_stage("GLOO_REDUCESCATTER", nullptr);
  const auto size = static_cast<std::size_t>(options_.size);
  const std::size_t count = call.counts.at(static_cast<std::size_t>(options_.rank));
  const std::size_t bytes = count * size_of(call.dtype);
  const auto received = std::make_unique_for_overwrite<std::byte[]>(size * bytes);
  exchange(call.input, call.counts, received.get(), std::vector<std::size_t>(size, count), size_of(call.dtype));
  std::vector<const void*> inputs;
  for (std::size_t rank = 0; rank < size; ++rank) inputs.push_back(received.get() + rank * bytes);
  RankOrderReduction(call.dtype, call.op, call.prescale, call.postscale, options_.size).run(call.output, inputs, count);
}

/// The numbers of elements that go to each rank and come from it.
void GlooBackend::exchange(const void* input, const std::vector<std::size_t>& send, void* output,
                           const std::vector<std::size_t>& receive, std::size_t element_bytes) {
  const auto bytes = [element_bytes](const std::vector<std::size_t>& counts) {
    std::vector<std::int64_t> result;
    for (const std::size_t count : counts) result.push_back(static_cast<std::int64_t>(count * element_bytes));
    return result;
  };
  gloo::AlltoallvOptions options(context_);
  // Gloo takes a pointer to memory that it may change, but only reads it.
  options.setInput(const_cast<std::uint8_t*>(static_cast<const std::uint8_t*>(input)), bytes(send));
  options.setOutput(static_cast<std::uint8_t*>(output), bytes(receive));
  options.setTag(tag_++);
  gloo::alltoallv(options);
}

}  // namespace runjob::runtime
