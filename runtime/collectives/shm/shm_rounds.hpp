#pragma once

#include <atomic>

#include "runtime/collectives/rank_order_reduction.hpp"
#include "runtime/collectives/rounds.hpp"
#include "runtime/collectives/shm/small_exchange.hpp"
#include "runtime/collectives/shm/stage.hpp"

namespace runjob::runtime {

/// Rounds through shared memory: each is one step of the small exchange, in which the flag's cache line says how long the
/// message is, and holds it up to kInlineBytes; a longer one lies in the cell.
class ShmRounds : public Rounds {
 public:
  ShmRounds(Group& group, SmallExchange& small) : group_(group), small_(small) {}

  std::size_t most_bytes() const override { return small_.most_bytes(); }
  void give(std::uint32_t tag, std::span<const std::byte> bytes) override { give_without(tag, bytes, {}); }
  void give_without(std::uint32_t tag, std::span<const std::byte> bytes, Part unread) override;
  bool collect(Deadline deadline, const IsBusy& is_busy) override;
  bool has_given(int rank) const override;
  std::uint32_t tag(int rank) const override;
  std::span<const std::byte> message(int rank) const override;
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
  void fill_cell(std::byte* cell, std::span<const std::byte> bytes, Part unread);
  bool wait_for(int peer, Deadline deadline, const IsBusy& is_busy);

  Group& group_;
  SmallExchange& small_;
  std::optional<Clock::time_point> waits_since_;  ///< in this round, for a rank that did not come at once
  CopyTable::Sizes sizes_given_ = 0;              ///< of the messages of a round that all have given
  std::size_t most_bytes_to_read_ = 0;            ///< the largest one of the others'
  std::optional<Clock::time_point> reads_since_;  ///< when its messages' reading is timed
  std::atomic<bool> nudged_{false};
  mutable std::optional<RankOrderReduction> reduction_;  ///< the last one: the next is often the same
};

}  // namespace runjob::runtime
