#include "runtime/collectives/shm/shm_rounds.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/tuning/prefetch.hpp"

namespace runjob::runtime {
namespace {

/// Copies all of a message except for the part that no rank reads.
inline void copy_parts(CopyFunction copy, std::byte* to, std::span<const std::byte> bytes, Rounds::Part unread) {
  copy(to, bytes.data(), unread.first);
  const std::size_t after = unread.first + unread.bytes;
  if (bytes.size() > after) copy(to + after, bytes.data() + after, bytes.size() - after);
}

}  // namespace

void ShmRounds::give_input(std::uint32_t tag, std::span<const std::byte> bytes, Part unread) {
  limit_.reset();
  reads_since_.reset();
  small_.stores().count(std::exchange(sizes_given_, 0));
  most_bytes_to_read_ = 0;
  const Header header{static_cast<std::uint32_t>(bytes.size()), tag};
  std::byte* line = small_.begin(sizeof header);
  std::memcpy(line, &header, sizeof header);
  std::byte* to = bytes.size() <= kInlineBytes ? line + sizeof header : small_.cell(group_.rank(), bytes.size());
  if (bytes.size() < StoresTuner::kLeastBytes) {
    copy_parts(&copy_bytes, to, bytes, unread);
  } else {
    fill_cell(to, bytes, unread);
  }
  ++round_;
  if (group_.header().notes_times.load(std::memory_order_relaxed) != 0) note_time();
  small_.give();
  group_.announce_round();
}

/// To be called before the flag is written: a rank that sees the flag also sees the time.
void ShmRounds::note_time() {
  GivenTime& time = group_.own().given_times[round_ % RankFields::kFlags];
  time.round.store(round_, std::memory_order_relaxed);
  time.ns.store(Clock::now().time_since_epoch() / std::chrono::nanoseconds(1), std::memory_order_relaxed);
}

std::int64_t ShmRounds::given_at(int rank) const {
  const GivenTime& time = group_.fields(rank).given_times[round_ % RankFields::kFlags];
  return time.round.load(std::memory_order_relaxed) == round_ ? time.ns.load(std::memory_order_relaxed) : 0;
}

void ShmRounds::note_times(bool are_noted) {
  group_.header().notes_times.store(are_noted ? 1 : 0, std::memory_order_relaxed);
}

/// Writes a message for which the kind of stores matters.
void ShmRounds::fill_cell(std::byte* cell, std::span<const std::byte> bytes, Part unread) {
  const bool is_timed = small_.stores().is_timed(bytes.size());
  const auto begin = is_timed ? Clock::now() : Clock::time_point();
  copy_parts(small_.copy(bytes.size()), cell, bytes, unread);
  if (!is_timed) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // waits until all of it has left this processor
  small_.stores().add_write(bytes.size(), Clock::now() - begin);
}

bool ShmRounds::collect(Deadline deadline, const IsBusy& is_busy) {
  for (int peer = 0; peer < group_.size(); ++peer) {
    const bool is_here = has_given(peer) || group_.look(peer, small_.given(peer), small_.step());
    if (!is_here && !wait_for(peer, deadline, is_busy)) return false;
    const std::size_t bytes = header(peer).bytes;
    if (peer != group_.rank()) most_bytes_to_read_ = std::max(most_bytes_to_read_, bytes);
    sizes_given_ |= StoresTuner::size_of_message(bytes);
  }
  small_.all_have_given();
  if (small_.stores().is_timed(most_bytes_to_read_)) reads_since_ = Clock::now();
  return true;
}

/// Sleeps. False if the deadline came first.
bool ShmRounds::wait_for(int peer, Deadline deadline, const IsBusy& is_busy) {
  const Step& given = small_.given(peer);
  if (!limit_) limit_.emplace(group_.timeout(), Clock::now());
  const auto has_given_now = [&] { return given.load(std::memory_order_seq_cst) >= small_.step(); };
  const bool must_come = is_busy(peer);
  for (;;) {
    const auto next = limit_->next_look();
    group_.sleep_at(
        peer, [&] { return has_given_now() || departed() >= 0; }, std::min(next, deadline.value_or(next)));
    if (has_given_now()) return true;
    if (const int gone = departed(); gone >= 0) group_.throw_lost(gone);
    const auto now = Clock::now();
    if (limit_->is_over(now) && must_come) group_.throw_timeout(peer);
    if (deadline && now >= *deadline) return false;
  }
}

/// A rank that has left without giving its message of this round, so that the round will never be complete; -1 for
/// none.
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

/// The other ranks' processors still have the lines of this rank's next flag and cell, because they have read them. To
/// fetch them back takes as long as an exchange of flags; the prefetch does it while this rank does something else.
void ShmRounds::expect_next(std::size_t bytes) {
  small_.expect_next(bytes > kInlineBytes ? bytes : 0);
  if (!reads_since_) return;
  small_.stores().add_read(most_bytes_to_read_, Clock::now() - *reads_since_);
  reads_since_.reset();
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
