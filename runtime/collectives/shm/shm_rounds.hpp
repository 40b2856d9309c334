#pragma once

#include <atomic>
#include <optional>

#include "base/process/time_limit.hpp"
#include "runtime/collectives/rank_order_reduction.hpp"
#include "runtime/collectives/rounds.hpp"
#include "runtime/collectives/shm/small_exchange.hpp"
#include "runtime/collectives/shm/stage.hpp"

namespace runjob::runtime {

/// Rounds through shared memory. Each round is one step of the small exchange. The cache line of the flag has a header
/// with the length of the message, and the message itself up to kInlineBytes; a longer one lies in the cell.
///
/// Owner    group and exchange are the caller's and outlive the rounds.
/// Threads  as Rounds: one at a time; nudge(), leave() and is_awaited() from any thread.
/// Errors   as Rounds.
class ShmRounds : public Rounds {
 public:
  ShmRounds(Group& group, SmallExchange& small) : group_(group), small_(small) {}

  std::size_t most_bytes() const override { return small_.most_bytes(); }
  void give(std::uint32_t tag, std::span<const std::byte> bytes) override { give_input(tag, bytes, {}); }
  void give_input(std::uint32_t tag, std::span<const std::byte> bytes, Part unread) override;
  bool collect(Deadline deadline, const IsBusy& is_busy) override;
  bool has_given(int rank) const override;
  std::uint32_t tag(int rank) const override;
  std::span<const std::byte> message(int rank) const override;
  std::int64_t given_at(int rank) const override;
  void note_times(bool are_noted) override;
  void expect_next(std::size_t bytes) override;
  void reduce(const Call& call, std::span<const void* const> inputs, std::size_t count) const override;
  bool is_awaited() const override;
  void wait(Deadline deadline) override;
  void nudge() override;
  void leave() override;
  const char* activity(Kind kind) const override { return shm_stage(kind); }

 private:
  struct Header {
    std::uint32_t bytes, tag;
  };
  static constexpr std::size_t kInlineBytes = FlagLine::kPayloadBytes - sizeof(Header);

  Header header(int rank) const;
  int departed() const;
  void note_time();
  void fill_cell(std::byte* cell, std::span<const std::byte> bytes, Part unread);
  bool wait_for(int peer, Deadline deadline, const IsBusy& is_busy);

  Group& group_;
  SmallExchange& small_;
  std::uint64_t round_ = 0;                       ///< how many messages this rank has given
  std::optional<TimeLimit> limit_;                ///< of this round's wait for ranks, once it waits
  StoresTuner::Sizes sizes_given_ = 0;            ///< sizes of the messages of a complete round
  std::size_t most_bytes_to_read_ = 0;            ///< the size of the largest message of another rank
  std::optional<Clock::time_point> reads_since_;  ///< when reading began, if it is timed
  std::atomic<bool> nudged_{false};
  mutable std::optional<RankOrderReduction> reduction_;  ///< of the last call: the next one is often the same
};

}  // namespace runjob::runtime
