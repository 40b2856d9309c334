#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/collectives/hierarchical/exchanges/topology.hpp"
#include "runtime/collectives/hierarchical/rounds/attendance.hpp"
#include "runtime/collectives/hierarchical/rounds/far_board.hpp"
#include "runtime/collectives/hierarchical/rounds/leader_exchange.hpp"
#include "runtime/collectives/hierarchical/rounds/message_block.hpp"
#include "runtime/collectives/hierarchical/rounds/round_wait.hpp"
#include "runtime/collectives/rounds.hpp"
#include "runtime/collectives/shm/shm_rounds.hpp"

namespace runjob::runtime {

/// Rounds of a job on several hosts. The ranks of a host give their messages in shared memory. When all have, their
/// leader sends them to the other leaders, and writes the messages of the other hosts on the host's board. So a rank
/// that is no leader waits in shared memory only, and a leader sends as many messages in a round as the number of hosts
/// has binary digits.
///
/// has_given()  false until it is known on this host. A leader that waits for long asks the other hosts, so that it
///              becomes known although the messages of that rank's host, or of one that passes them on, are held up.
/// given_at()   of a rank of another host: the time of arrival here less the message's age. Only the leader knows it.
/// leave()      of a leader: the other ranks of its host may need it too, for messages that it would have passed on.
class HostRounds : public Rounds {
 public:
  struct Options {
    std::chrono::milliseconds timeout{30000};
    std::size_t most_data_bytes = SIZE_MAX;  ///< a limit below that of FarBoard, the same on all ranks; 0: no data
  };

  /// `group` and `local`: those of this host's ranks. `exchange`: null for a rank that is not the leader.
  /// Owner  all are lent.
  HostRounds(const Topology& topology, Group& group, ShmRounds& local, const FarBoard& board, LeaderExchange* exchange,
             const Options& options);

  std::size_t most_bytes() const override { return FarBoard::most_bytes(board_.ranks()); }
  std::size_t most_data_bytes(Kind kind) const override {
    return std::min(most_data_bytes_, FarBoard::most_data_bytes(board_.ranks(), kind));
  }
  void give(std::uint32_t tag, std::span<const std::byte> bytes) override;
  void give_input(std::uint32_t tag, std::span<const std::byte> input, Part unread) override;
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
  bool announce_departures() override;

 private:
  void begin_round();
  bool collect_as_member(Deadline deadline, const IsBusy& is_busy);
  bool collect_as_leader(Deadline deadline, const IsBusy& is_busy);
  bool collect_host(Deadline deadline, const IsBusy& is_busy);
  bool collect_hosts(Deadline deadline, const IsBusy& is_busy);
  void throw_if_departed() const;

  const Topology& topology_;
  Group& group_;
  ShmRounds& local_;
  const FarBoard board_;
  const Attendance attendance_;
  LeaderExchange* const exchange_;
  const std::size_t most_data_bytes_;
  RoundWait wait_;
  std::optional<RoundMessage> lent_;  ///< the message of a lone rank that gave an operation's input
  std::string memory_;                ///< for the next block
  std::uint64_t round_ = 0;           ///< this rank has given its message of it
  std::atomic<bool> nudged_{false};
};

}  // namespace runjob::runtime
