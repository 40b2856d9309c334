#include "runtime/collectives/hierarchical/host_memory.hpp"

#include <cstring>
#include <new>

#include "base/error.hpp"
#include "runtime/collectives/hierarchical/rounds/far_board.hpp"
#include "runtime/collectives/shm/memory/sharing.hpp"

namespace runjob::runtime {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

std::string HostMemory::offer(const std::string& socket_directory) {
  SharingOffer offer;
  try {
    offer.place = this_place();
    if (topology_.local_rank() == 0 && topology_.local_size() > 1) {
      segment_ = Segment::create(layout_.bytes());
      handover_ = std::make_unique<Handover>(socket_directory);
      offer.path = handover_->path();
      offer.name = handover_->name();
      offer.token = handover_->token();
    }
  } catch (const Error& error) {
    handover_.reset();
    offer = {};
    offer.refusal = error.what();
  }
  return encode(offer);
}

void HostMemory::join(const std::string& of_leader, int leader, const WaitLimits& limits) {
  if (topology_.local_size() == 1) return allocate();
  if (topology_.local_rank() == 0) {
    handover_->serve(segment_.descriptor(), topology_.local_size(), limits);
    handover_.reset();
  } else {
    const SharingOffer offer = decode_sharing_offer(of_leader, leader);
    const std::string& socket = socket_for(this_place(), offer);
    segment_ =
        Segment::attach(receive_descriptor(socket, offer.token, topology_.local_rank(), limits), layout_.bytes());
  }
  segment_.take_descriptor().reset();
}

/// Only the words are cleared: no rank reads the rest before it is written.
void HostMemory::allocate() {
  alone_.reset(std::aligned_alloc(kPage, layout_.bytes()));
  if (!alone_) throw std::bad_alloc();
  std::memset(alone_.get(), 0, layout_.cell(0, 0, 0));
  std::memset(static_cast<std::byte*>(alone_.get()) + layout_.board(), 0, FarBoard::words_bytes(topology_.size()));
}

}  // namespace runjob::runtime
