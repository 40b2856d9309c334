#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/collectives/hierarchical/exchanges/topology.hpp"
#include "runtime/collectives/hierarchical/rounds/dissemination.hpp"
#include "runtime/collectives/hierarchical/rounds/far_board.hpp"
#include "runtime/collectives/hierarchical/rounds/leader_links.hpp"
#include "runtime/collectives/hierarchical/rounds/message_block.hpp"
#include "runtime/collectives/shm/group.hpp"

namespace runjob::runtime {

/// The exchange of the hosts' blocks of messages, round after round, by dissemination. A leader sends its own block,
/// passes on those of other hosts, and writes the messages in them on its host's board, where they have no other place:
/// message(). The last message of a round wakes the ranks of its host.
///
/// Owner    topology, group and links are lent.
/// Threads  one at a time.
/// Errors   Error(kProtocol) for blocks that no host sends, kPeerLost for a host that has ended its connection before
///          it has sent its blocks. Nothing works any more after an error.
class BlockExchange {
 public:
  BlockExchange(const Topology& topology, Group& group, const FarBoard& board, LeaderLinks& links);

  /// The round that is exchanged, or that was exchanged last.
  std::uint64_t round() const { return round_; }
  bool is_complete() const { return step_ == way_.steps(); }
  /// The number of messages that have come in this round.
  int step() const { return step_; }
  /// The host whose message is awaited. Only for a round that is not complete.
  int source() const { return way_.source(step_); }
  /// The host that gets this one's first message.
  int first_target() const { return way_.target(0); }

  /// Begins the next round, when the one before it is complete; `block`: this host's messages. Its data are no longer
  /// used when the call returns. Returns a string whose memory the next block can use.
  std::string begin(LentBlock block);
  /// Takes a message of `host`. One that is not awaited yet is kept.
  void receive(int host, std::uint64_t round, std::string_view blocks);
  /// Goes on with the messages that are kept.
  void advance();
  /// The message of a rank of another host in a complete round: on the board or, in a job of two ranks, where it was
  /// received. Valid until the next round.
  std::span<const std::byte> message(int rank) const { return off_board_.value_or(board_.message(round_, rank)); }

  /// See Rounds::given_at(), of the round that was complete last: the time of arrival here less the message's age.
  /// Without an age, and by the time on the wire, it is too late.
  std::int64_t given_at(int rank) const { return given_ns_[static_cast<std::size_t>(rank)]; }

 private:
  struct Message {
    std::uint64_t round;
    std::string blocks;
    std::int64_t received_ns;
  };

  bool is_awaited(int host, std::uint64_t round) const;
  void take(std::string_view blocks, std::int64_t received_ns, bool in_frame);
  void write_on_board(std::string_view blocks, std::int64_t received_ns, bool in_frame);
  void put(int rank, const RoundMessage& message, bool in_frame);
  void refresh_ages(int count);

  const Topology& topology_;
  Group& group_;
  const FarBoard board_;
  LeaderLinks& links_;
  const Dissemination way_;
  std::uint64_t round_ = 0;
  int step_;
  std::string blocks_;                      ///< from the own one on, as far as they are passed on
  std::vector<std::size_t> ends_;           ///< where each of them ends
  std::vector<std::int64_t> aged_ns_;       ///< the time of the ages in each of them
  std::vector<std::deque<Message>> early_;  ///< by host: messages that were not awaited
  std::vector<std::int64_t> given_ns_;      ///< by rank
  ControlChannel::Memory received_;         ///< where off_board_ lies
  std::optional<std::span<const std::byte>> off_board_;
};

}  // namespace runjob::runtime
