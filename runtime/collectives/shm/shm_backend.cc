#include "runtime/collectives/shm/shm_backend.hpp"

#include <utility>

#include <fmt/format.h>

#include "runtime/collectives/shm/allgather.hpp"
#include "runtime/collectives/shm/allreduce.hpp"
#include "runtime/collectives/shm/alltoall.hpp"
#include "runtime/collectives/shm/broadcast.hpp"
#include "runtime/collectives/shm/memory/sharing.hpp"
#include "runtime/collectives/shm/reducescatter.hpp"
#include "runtime/collectives/shm/tuning/processor_share.hpp"

namespace runjob::runtime {
namespace {

SegmentHeader& header_of(const Segment& segment) {
  return *static_cast<SegmentHeader*>(segment.data());
}

}  // namespace

ShmBackend::ShmBackend(const MeshOptions& options, const std::string& socket_directory, ShmOptions shm)
    : options_(options), shm_(std::move(shm)), layout_(options.size) {
  try {
    prepare(socket_directory);
  } catch (const Error& error) {
    handover_.reset();
    address_ = encode(
        SharingOffer{.refusal = error.what(), .place = {}, .processors = {}, .path = {}, .name = {}, .token = {}});
  }
}

void ShmBackend::prepare(const std::string& socket_directory) {
  SharingOffer offer;
  offer.place = this_place();
  offer.processors = own_processors();
  cancel_.emplace();
  if (options_.rank == 0) {
    const bool makes_heap = shm_.symmetric_memory && !shm_.job_buffers;
    const std::size_t window = makes_heap ? SymmetricHeap::window_bytes(options_.size) : 0;
    const std::size_t windows = window * static_cast<std::size_t>(options_.size);
    segment_ = Segment::create(layout_.bytes(), windows);
    handover_ = std::make_unique<Handover>(socket_directory);
    offer.path = handover_->path();
    offer.name = handover_->name();
    offer.token = handover_->token();
  }
  address_ = encode(offer);
}

ShmBackend::~ShmBackend() {
  const MutexLock lock(mutex_);
  if (group_ != nullptr) group_->leave();
  if (heap_) heap_->end_use();
}

Status ShmBackend::connect(const std::vector<std::string>& addresses) {
  try {
    std::vector<std::string> processors;
    for (int rank = 0; rank < options_.size; ++rank)
      processors.push_back(
          decode_sharing_offer(addresses.at(static_cast<std::size_t>(rank)), options_.name(rank)).processors);
    const double share = processor_share(processors);
    segment_ = exchange_segment(addresses, share);
    const Layout layout = layout_.with_ring_cells(header_of(segment_).ring_cell_bytes);
    const std::size_t window = segment_.behind() / static_cast<std::size_t>(options_.size);
    if (UniqueFd file = segment_.take_descriptor(); window > 0) {
      heap_ = std::make_shared<SymmetricHeap>(std::move(file), layout_.bytes(), window, options_.rank, options_.size);
    } else {
      heap_ = std::dynamic_pointer_cast<SymmetricHeap>(shm_.job_buffers);
    }
    if (heap_) heap_->begin_use();
    const Patience patience = Patience::for_ranks(options_.size, share);
    channels_ = std::make_unique<Channels>(
        segment_.data(), layout, GroupOptions{options_.rank, patience, options_.operation_timeout, options_.names},
        BufferOptions{.heap = heap_, .heap_ranks = options_.names, .cma = shm_.cma});
  } catch (const Error& error) {
    const bool is_peers_end = error.code() == Errc::kPeerLost || error.code() == Errc::kAborted;
    const char* remedy = is_peers_end ? "" : "; RUNJOB_SHARED_MEMORY=0 does without";
    return fail(Error(error.code(), error.what() + std::string(remedy)), "while starting");
  }
  const MutexLock lock(mutex_);
  group_ = &channels_->group;
  return failure_;
}

/// Rank 0 hands the segment over, the others receive it. `processors`: of all ranks together, as far as this rank
/// knows.
Segment ShmBackend::exchange_segment(const std::vector<std::string>& addresses, double processors) {
  const WaitLimits limits{std::chrono::steady_clock::now() + options_.connect_timeout, cancel_->get(), options_.names};
  if (options_.rank == 0) {
    header_of(segment_).ring_cell_bytes = Layout::ring_cell_bytes_on(processors, options_.size);
    handover_->serve(segment_.descriptor(), options_.size, limits);
    handover_.reset();
    return std::move(segment_);
  }
  const SharingOffer offer = decode_sharing_offer(addresses.at(0), options_.name(0));
  return Segment::attach(receive_descriptor(socket_for(this_place(), offer), offer.token, options_.rank, limits),
                         layout_.bytes());
}

void ShmBackend::abort(const Status& why) {
  const MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = why;
  if (group_ != nullptr) return group_->end();
  cancel_->set();
}

Status ShmBackend::run(const Call& call) {
  {
    const MutexLock lock(mutex_);
    if (!failure_.ok()) return failure_;
  }
  try {
    switch (call.kind) {
      case Kind::kAllreduce:
        allreduce(*channels_, call);
        break;
      case Kind::kAllgather:
        allgather(*channels_, call);
        break;
      case Kind::kBroadcast:
        broadcast(*channels_, call);
        break;
      case Kind::kAlltoall:
        alltoall(*channels_, call);
        break;
      case Kind::kReducescatter:
        reducescatter(*channels_, call);
        break;
      case Kind::kBarrier:
      case Kind::kJoin:
        break;
    }
    return {};
  } catch (const Error& error) {
    return fail(error, to_string(call.kind));
  } catch (const std::exception& error) {
    return fail(Error(Errc::kSystem, error.what()), to_string(call.kind));
  }
}

/// Keeps the first failure. After it every call fails, because the ranks' steps no longer agree.
Status ShmBackend::fail(const Error& error, std::string_view operation) {
  const MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = Status(error.code(), fmt::format("shared memory, {}: {}", operation, error.what()));
  return failure_;
}

}  // namespace runjob::runtime
