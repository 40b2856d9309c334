#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "base/status.hpp"
#include "base/unique_handle.hpp"
#include "runtime/collectives/hierarchical/exchanges/topology.hpp"
#include "runtime/collectives/hierarchical/rounds/dissemination.hpp"
#include "runtime/collectives/hierarchical/rounds/far_board.hpp"
#include "runtime/collectives/hierarchical/rounds/idle_receiver.hpp"
#include "runtime/collectives/hierarchical/rounds/leader_links.hpp"
#include "runtime/collectives/hierarchical/rounds/message_block.hpp"
#include "runtime/collectives/rounds.hpp"
#include "runtime/collectives/shm/group.hpp"
#include "runtime/collectives/shm/tuning/spin_time.hpp"

namespace runjob::runtime {

/// What a host's leader does in rounds for its host: sends the block of its ranks' messages on its way to all other hosts, passes
/// theirs on, and writes what it hears on the board, where its ranks read it.
///
/// Threads  the driver calls begin(), advance(), wait() and expect_absence(); the rest is any thread's. "runjob-rounds" takes in
///          what comes, and wakes the host's ranks that wait for a round to begin, while the driver is away (IdleReceiver).
/// Errors   of begin() and advance(): Error(kConnect) naming the rank whose connection has ended, kPeerLost naming one whose
///          host is out of reach, kProtocol; from then on.
class LeaderExchange {
 public:
  using Clock = std::chrono::steady_clock;

  /// `channels`: by host, that of the own host unused. `spin`: the longest time for which a driver spins before it
  /// sleeps.
  LeaderExchange(const Topology& topology, Group& group, const FarBoard& board, std::vector<ControlChannel> channels,
                 std::chrono::microseconds spin, std::vector<int> names = {});
  ~LeaderExchange();
  LeaderExchange(const LeaderExchange&) = delete;
  LeaderExchange& operator=(const LeaderExchange&) = delete;

  /// The round that this host has begun last.
  std::uint64_t round() const { return own_round_; }
  /// Begins the next one, once the one before is complete; `block`: encode_block() of this host's messages.
  /// Returns a string whose memory the next block can use.
  std::string begin(std::string block);
  /// Takes in what has come from the host whose message is awaited. True when all messages of the round are on the board.
  bool advance();
  /// The time at which a rank of another host gave its message of the round that was complete last: that of its arrival
  /// here less its age. Without an age, and by the time on the wire, it is too late.
  /// Units  nanoseconds of the steady clock.
  std::int64_t given_at(int rank) const;
  /// Waits until there may be something to advance() with, an interrupt() or the deadline. Takes in what all hosts send.
  void wait(Clock::time_point deadline);

  /// While there is one, the driver receives by itself and the thread stands aside.
  class Attention {
   public:
    explicit Attention(LeaderExchange& exchange) : exchange_(exchange) { exchange.receiver_.enter(); }
    ~Attention() { exchange_.receiver_.leave(); }
    Attention(const Attention&) = delete;
    Attention& operator=(const Attention&) = delete;

   private:
    LeaderExchange& exchange_;
  };

  /// The driver begins to wait for something else than messages.
  void expect_absence() { receiver_.expect_absence(); }

  /// Wakes the ranks of other hosts that wait for the round to begin, without waiting for its messages to reach them.
  void tell_begun();
  /// Tells all other hosts which ranks of this one have given their message of `round`, and has them answer with theirs.
  void ask(std::uint64_t round);
  /// Rank `rank` of this host takes no part after `round`.
  void tell_left(int rank, std::uint64_t round);

  void interrupt();
  /// Ends the connections; nothing works any more.
  void close();

  Rounds::Traffic traffic() const;
  /// The rank to which the network has failed; -1 for none. A rank that has closed its connection is none. Any thread.
  int lost_rank() const { return lost_rank_; }

 private:
  using Frame = LeaderLinks::Frame;
  using Type = LeaderLinks::Type;
  struct Blocks {
    std::uint64_t round;
    std::string bytes;
    std::int64_t received_ns;
  };

  void receive_all();
  template <class Receive>
  void guarded(Receive receive) REQUIRES(mutex_);
  bool has_advanced();
  void advance_steps() REQUIRES(mutex_);
  void on_frame(int host, const Frame& frame) REQUIRES(mutex_);
  void on_end(int host) REQUIRES(mutex_);
  void look_for_silence(Clock::time_point now);
  bool has_leader_left(int host) const;
  int leader_name(int host) const;
  void on_blocks(int host, const Frame& frame) REQUIRES(mutex_);
  void on_present(int host, const Frame& frame) REQUIRES(mutex_);
  void on_left(const Frame& frame) REQUIRES(mutex_);
  void note_begun(std::uint64_t round) REQUIRES(mutex_);
  void refresh_ages(int count) REQUIRES(mutex_);
  bool is_awaited(int host, std::uint64_t round) const REQUIRES(mutex_);
  void take_step(std::string_view bytes, std::int64_t received_ns) REQUIRES(mutex_);
  void take_blocks(std::string_view bytes, std::int64_t received_ns, int source, int count) REQUIRES(mutex_);
  std::string present(std::uint64_t round) const;
  void fail(const Error& error) REQUIRES(mutex_);

  const Topology& topology_;
  Group& group_;
  const FarBoard board_;
  const Dissemination way_;
  const std::vector<int> names_;  ///< the ranks' numbers in their job; empty: the same as here

  mutable Mutex mutex_;
  LeaderLinks links_ GUARDED_BY(mutex_);
  std::uint64_t round_ GUARDED_BY(mutex_) = 0;        ///< that is exchanged, or was last
  int step_ GUARDED_BY(mutex_) = 0;                   ///< of it, that waits for its message
  std::string blocks_ GUARDED_BY(mutex_);             ///< of it, from the own host on, as far as they are sent on
  std::vector<std::size_t> ends_ GUARDED_BY(mutex_);  ///< where each of them ends
  std::vector<std::deque<Blocks>> early_ GUARDED_BY(mutex_);  ///< by host: what has come and was not looked at yet
  std::vector<std::int64_t> aged_ns_ GUARDED_BY(mutex_);      ///< of each of `blocks_`: the time of its ages
  std::vector<std::int64_t> given_ns_ GUARDED_BY(mutex_);     ///< by rank; see given_at()
  Status failure_ GUARDED_BY(mutex_);
  std::atomic<int> lost_rank_{-1};

  // The driver's.
  std::uint64_t own_round_ = 0;
  Clock::time_point next_look_;  ///< at the connections, for silent hosts
  SpinTime spin_;

  EventFd wake_driver_;
  UniqueFd driver_poll_;   ///< an epoll of the links' one and of wake_driver_
  IdleReceiver receiver_;  ///< last: its thread uses the members above
};

}  // namespace runjob::runtime
