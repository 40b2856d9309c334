#pragma once

#include <atomic>
#include <memory>

#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"
#include "runtime/collectives/hierarchical/exchanges/topology.hpp"
#include "runtime/collectives/hierarchical/rounds/far_board.hpp"
#include "runtime/collectives/hierarchical/rounds/leader_exchange.hpp"
#include "runtime/collectives/rounds.hpp"
#include "runtime/collectives/shm/shm_rounds.hpp"

namespace runjob::runtime {

/// Rounds of a job on several hosts. The ranks of a host give their messages in shared memory; its leader, when all have, sends
/// them to the other leaders, and writes what it hears of them on the host's board. So a rank that is no leader waits in
/// shared memory only, and each leader sends as many messages as the number of hosts has binary digits.
///
/// has_given()  what has not come to this host counts as not given. Whoever waits for long asks around, so that it is known of each
///              rank although the messages of its host, or of one that passes them on, are still held up.
/// given_at()   of a rank of another host: the arrival of its message here less the message's age; known to the leader only.
/// leave()      of a leader: also the other ranks of its host may need it for messages that it would have passed on.
class HostRounds : public Rounds {
 public:
  struct Options {
    std::chrono::milliseconds timeout{30000};
    bool carries_data = true;  ///< whether operations may have their data in the messages
  };

  /// `group` and `local`: of this host's ranks. `exchange`: null for a rank that is not the leader. All are lent.
  HostRounds(const Topology& topology, Group& group, ShmRounds& local, const FarBoard& board, LeaderExchange* exchange,
             const Options& options);

  std::size_t most_bytes() const override { return FarBoard::most_bytes(board_.ranks()); }
  std::size_t most_data_bytes() const override {
    return options_.carries_data ? FarBoard::most_data_bytes(board_.ranks()) : 0;
  }
  void give(std::uint32_t tag, std::span<const std::byte> bytes) override { give_without(tag, bytes, {}); }
  void give_without(std::uint32_t tag, std::span<const std::byte> bytes, Part unread) override;
  bool collect(Deadline deadline, const IsBusy& is_busy) override;
  bool has_given(int rank) const override;
  std::uint32_t tag(int rank) const override;
  std::span<const std::byte> message(int rank) const override;
  std::int64_t given_at(int rank) const override;
  void note_times(bool are_noted) override { local_.note_times(are_noted); }
  bool is_awaited() const override;
  void wait(Deadline deadline) override;
  const char* activity(Kind kind) const override;
  void reduce(const Call& call, std::span<const void* const> inputs, std::size_t count) const override;
  Traffic traffic() const override { return exchange_ == nullptr ? Traffic{} : exchange_->traffic(); }
  void nudge() override;
  void leave() override;

 private:
  bool is_here(int rank) const { return topology_.host_of(rank) == topology_.host(); }
  bool is_heard() const { return board_.heard().load(std::memory_order_acquire) >= round_; }
  bool collect_as_member(Deadline deadline, const IsBusy& is_busy);
  bool collect_as_leader(Deadline deadline, const IsBusy& is_busy);
  bool collect_host(Deadline deadline, const IsBusy& is_busy);
  bool collect_hosts(Deadline deadline, const IsBusy& is_busy);
  std::vector<RoundMessage> own_messages(bool with_ages) const;
  std::string block();
  bool awaits_others(const IsBusy& is_busy) const;
  Clock::time_point next_look(Deadline deadline, const IsBusy& is_busy);
  bool is_over(Deadline deadline, const IsBusy& is_busy);
  int late_rank(const IsBusy& is_busy) const;
  bool has_departed() const;
  void throw_if_departed() const;
  void tell_departures() const;

  const Topology& topology_;
  Group& group_;
  ShmRounds& local_;
  const FarBoard board_;
  LeaderExchange* const exchange_;
  const Options options_;
  Part unread_;                                   ///< of this rank's message
  std::string memory_;                            ///< for the next block
  std::uint64_t round_ = 0;                       ///< this rank has given its message of it
  std::optional<Clock::time_point> waits_since_;  ///< in this round, for a rank that did not come at once
  Clock::time_point next_question_;
  std::atomic<bool> nudged_{false};
};

}  // namespace runjob::runtime
