#include "runtime/collectives/shm/shm_rounds.hpp"

#include <algorithm>
#include <cstring>

namespace runjob::runtime {

void ShmRounds::give(std::uint32_t tag, std::span<const std::byte> bytes) {
  waits_since_.reset();
  const Header header{static_cast<std::uint32_t>(bytes.size()), tag};
  std::byte* line = small_.begin(sizeof header);
  std::memcpy(line, &header, sizeof header);
  std::byte* to = bytes.size() <= kInlineBytes ? line + sizeof header : small_.cell(group_.rank());
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  small_.give();
  group_.announce_round();
}

bool ShmRounds::collect(Deadline deadline, const IsBusy& is_busy) {
  for (int peer = 0; peer < group_.size(); ++peer) {
    const Step& given = small_.given(peer);
    if (group_.look(given, small_.step())) continue;
    if (!waits_since_) waits_since_ = Clock::now();
    const auto limit = is_busy(peer) ? *waits_since_ + group_.timeout() : Clock::time_point::max();
    if (group_.sleep(peer, given, small_.step(), std::min(limit, deadline.value_or(limit)))) continue;
    if (Clock::now() >= limit) group_.throw_timeout(peer);
    return false;
  }
  return true;
}

bool ShmRounds::has_given(int rank) const {
  return small_.given(rank).load(std::memory_order_acquire) >= small_.step();
}

ShmRounds::Header ShmRounds::header(int rank) const {
  Header header;
  std::memcpy(&header, small_.line(rank), sizeof header);
  return header;
}

std::uint32_t ShmRounds::tag(int rank) const {
  return header(rank).tag;
}

std::span<const std::byte> ShmRounds::message(int rank) const {
  const std::size_t bytes = header(rank).bytes;
  return {bytes <= kInlineBytes ? small_.line(rank) + sizeof(Header) : small_.cell(rank), bytes};
}

bool ShmRounds::is_awaited() const {
  for (int peer = 0; peer < group_.size(); ++peer) {
    if (peer != group_.rank() && (small_.has_begun_next(peer) || group_.has_left(peer))) return true;
  }
  return false;
}

void ShmRounds::wait(Deadline deadline) {
  const auto is_over = [this] { return nudged_.load(std::memory_order_seq_cst) || is_awaited(); };
  group_.wait_for_round(is_over, deadline.value_or(Clock::time_point::max()));
  nudged_.store(false, std::memory_order_seq_cst);
}

void ShmRounds::nudge() {
  nudged_.store(true, std::memory_order_seq_cst);
  group_.ring_next_round();
}

const char* ShmRounds::activity(Kind kind) const {
  switch (kind) {
    case Kind::kAllreduce:
      return "SHM_ALLREDUCE";
    case Kind::kAllgather:
      return "SHM_ALLGATHER";
    case Kind::kBroadcast:
      return "SHM_BCAST";
    case Kind::kAlltoall:
      return "SHM_ALLTOALL";
    case Kind::kReducescatter:
      return "SHM_REDUCESCATTER";
    case Kind::kBarrier:
    case Kind::kJoin:
      break;
  }
  return nullptr;
}

void ShmRounds::leave() {
  group_.leave();
  group_.cancel();
}

}  // namespace runjob::runtime
