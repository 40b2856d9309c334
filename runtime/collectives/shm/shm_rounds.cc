#include "runtime/collectives/shm/shm_rounds.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/prefetch.hpp"

namespace runjob::runtime {

void ShmRounds::give_without(std::uint32_t tag, std::span<const std::byte> bytes, Part unread) {
  waits_since_.reset();
  const Header header{static_cast<std::uint32_t>(bytes.size()), tag};
  std::byte* line = small_.begin(sizeof header);
  std::memcpy(line, &header, sizeof header);
  std::byte* to = bytes.size() <= kInlineBytes ? line + sizeof header : small_.cell(group_.rank(), bytes.size());
  const std::size_t after = unread.first + unread.bytes;
  if (unread.first != 0) std::memcpy(to, bytes.data(), unread.first);
  if (bytes.size() > after) std::memcpy(to + after, bytes.data() + after, bytes.size() - after);
  small_.give();
  group_.announce_round();
}

bool ShmRounds::collect(Deadline deadline, const IsBusy& is_busy) {
  for (int peer = 0; peer < group_.size(); ++peer) {
    const Step& given = small_.given(peer);
    if (has_given(peer) || group_.look(peer, given, small_.step())) continue;
    if (!waits_since_) waits_since_ = Clock::now();
    const auto limit = is_busy(peer) ? *waits_since_ + group_.timeout() : Clock::time_point::max();
    const auto has_come = [&] { return given.load(std::memory_order_seq_cst) >= small_.step(); };
    group_.sleep_at(
        peer, [&] { return has_come() || departed() >= 0; }, std::min(limit, deadline.value_or(limit)));
    if (has_come()) continue;
    if (const int gone = departed(); gone >= 0) group_.throw_lost(gone);
    if (Clock::now() >= limit) group_.throw_timeout(peer);
    return false;
  }
  small_.all_have_given();
  return true;
}

/// A rank that has left without giving its message of this round, which therefore nobody need wait for; -1 for none.
int ShmRounds::departed() const {
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (group_.has_left(rank) && !has_given(rank)) return rank;
  }
  return -1;
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
  return {bytes <= kInlineBytes ? small_.line(rank) + sizeof(Header) : small_.cell(rank, bytes), bytes};
}

/// The other ranks' processors have the lines of this rank's next flag and cell, from the time when they read them: fetching them back
/// takes as long as an exchange of flags, but need not be waited for.
void ShmRounds::expect_next(std::size_t bytes) {
  small_.expect_next();
  if (bytes > kInlineBytes) prefetch_to_write(group_.cell(group_.rank(), small_.step() + 1, bytes), bytes);
}

void ShmRounds::reduce(const Call& call, std::span<const void* const> inputs, std::size_t count) const {
  const std::size_t bytes = count * size_of(call.dtype);
  if (bytes > kInlineBytes) {
    for (const void* input : inputs) prefetch_to_read(static_cast<const std::byte*>(input), bytes);
  }
  const int size = static_cast<int>(inputs.size());
  if (!reduction_ || !reduction_->is_of(call.dtype, call.op, call.prescale, call.postscale, size))
    reduction_.emplace(call.dtype, call.op, call.prescale, call.postscale, size);
  reduction_->run(call.output, inputs, count);
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

void ShmRounds::leave() {
  group_.leave();
  group_.cancel();
}

}  // namespace runjob::runtime
