#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "base/status.hpp"
#include "base/unique_handle.hpp"
#include "runtime/collectives/hierarchical/exchanges/topology.hpp"
#include "runtime/collectives/hierarchical/rounds/attendance.hpp"
#include "runtime/collectives/hierarchical/rounds/block_exchange.hpp"
#include "runtime/collectives/hierarchical/rounds/far_board.hpp"
#include "runtime/collectives/hierarchical/rounds/idle_receiver.hpp"
#include "runtime/collectives/hierarchical/rounds/leader_links.hpp"
#include "runtime/collectives/rounds.hpp"
#include "runtime/collectives/shm/group.hpp"
#include "runtime/collectives/shm/tuning/spin_time.hpp"

namespace runjob::runtime {

/// The part of a host's leader in rounds: it exchanges blocks of messages with the leaders of all other hosts, notes on
/// the host's board which of their ranks have begun a round or have left, and announces the same of its own ranks.
///
/// Owner    topology, group and the board's memory are lent.
/// Threads  the driver calls begin(), advance(), wait() and expect_absence(); any thread the rest. While the driver is
///          away, "runjob-rounds" receives and wakes the ranks of this host that wait for a round to begin
///          (IdleReceiver).
/// Errors   begin() and advance() throw Error(kConnect) that names the rank whose connection has ended, kPeerLost that
///          names a rank whose host is out of reach, and kProtocol. So does every later call.
class LeaderExchange {
 public:
  using Clock = std::chrono::steady_clock;

  /// `channels`: by host; that of the own host is unused. `spin`: the longest time for which a driver spins before it
  /// sleeps.
  LeaderExchange(const Topology& topology, Group& group, const FarBoard& board, std::vector<ControlChannel> channels,
                 std::chrono::microseconds spin);
  ~LeaderExchange();
  LeaderExchange(const LeaderExchange&) = delete;
  LeaderExchange& operator=(const LeaderExchange&) = delete;

  /// The round that this host has begun last.
  std::uint64_t round() const { return own_round_; }
  /// See BlockExchange::begin().
  std::string begin(LentBlock block);
  /// Receives from the host whose message is awaited. True when all messages of the round have come.
  bool advance();
  /// See BlockExchange.
  std::span<const std::byte> message(int rank) const;
  /// See BlockExchange::given_at().
  std::int64_t given_at(int rank) const;
  /// Waits until advance() may have something to do, for an interrupt() or until the deadline. Receives from all hosts.
  void wait(Clock::time_point deadline);

  /// While one exists, the driver receives by itself, and the thread "runjob-rounds" does not.
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

  /// Wakes the ranks of all hosts that wait for the round to begin, before its blocks reach them.
  void announce_begun();
  /// Announces to all hosts which ranks of this one have given their message of `round`, and which move bytes. They
  /// answer with theirs.
  void ask(std::uint64_t round);
  /// Rank `rank` of this host takes no part after `round`. Repeated calls for a rank have no effect.
  void announce_left(int rank, std::uint64_t round);

  void interrupt();
  /// Ends the connections; nothing works any more.
  void close();

  Rounds::Traffic traffic() const;
  /// The rank to which the network has failed; -1 for none. A rank that has closed its connection is none. Any thread.
  int lost_rank() const { return lost_rank_; }

 private:
  using Frame = LeaderLinks::Frame;
  using Type = LeaderLinks::Type;

  void receive_all();
  template <class Receive>
  void guarded(Receive receive) REQUIRES(mutex_);
  bool has_advanced();
  void on_frame(int host, const Frame& frame) REQUIRES(mutex_);
  void on_left(const Frame& frame) REQUIRES(mutex_);
  void on_end(int host) REQUIRES(mutex_);
  void look_for_silence(Clock::time_point now);
  int leader_name(int host) const { return topology_.name(topology_.ranks(host).front()); }
  void fail(const Error& error) REQUIRES(mutex_);

  const Topology& topology_;
  const Attendance attendance_;

  mutable Mutex mutex_;
  LeaderLinks links_ GUARDED_BY(mutex_);
  BlockExchange blocks_ GUARDED_BY(mutex_);
  Status failure_ GUARDED_BY(mutex_);
  std::set<int> announced_left_ GUARDED_BY(mutex_);  ///< ranks of this host
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
