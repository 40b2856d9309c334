#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/collectives/hierarchical/exchanges/topology.hpp"
#include "runtime/collectives/hierarchical/rounds/far_board.hpp"
#include "runtime/collectives/rounds.hpp"
#include "runtime/collectives/shm/group.hpp"

namespace runjob::runtime {

/// Which ranks have given their message of a round, which still move bytes of an operation before it, and which have
/// left, as this host knows it. The facts are words of the host's board, so that all ranks of the host see them.
///
/// Owner    the topology and the group are lent.
/// Threads  any for questions. Only the leader notes what other hosts announce, one thread at a time; this wakes the
///          ranks of its host that wait for it.
/// Errors   Error(kProtocol) for an announcement that no host sends.
class Attendance {
 public:
  Attendance(const Topology& topology, Group& group, const FarBoard& board);

  const Topology& topology() const { return topology_; }

  bool has_given(int rank, std::uint64_t round) const {
    return board_.given(rank).load(std::memory_order_acquire) >= round;
  }
  /// A rank that must take part in `round` and has not given its message; -1 for none.
  int late_rank(std::uint64_t round, const Rounds::IsBusy& is_busy) const;
  /// A rank that has left without giving its message of `round`; -1 for none.
  int departed_rank(std::uint64_t round) const;
  /// True when a departed_rank() may exist although no rank of this host has left.
  bool has_departures() const { return board_.departures().load(std::memory_order_seq_cst) != 0; }
  /// True when the leader of another host has announced that it leaves.
  bool has_leader_left(int host) const;

  /// A number that changes when a rank has moved bytes of an operation's data.
  std::uint64_t moves() const;

  /// A byte for each rank of this host. Its lowest bit is 1 for a rank that has given its message of `round`. The other
  /// bits change when the rank has moved bytes of an operation's data.
  std::string state_here(std::uint64_t round) const;

  /// Another host has begun `round`.
  void note_begun(std::uint64_t round) const;
  /// state_here() of another host.
  void note_state(int host, std::uint64_t round, std::string_view bytes) const;
  /// A rank of another host takes no part after `round`.
  void note_left(int rank, std::uint64_t round) const;

 private:
  const Topology& topology_;
  Group& group_;
  const FarBoard board_;
};

}  // namespace runjob::runtime
