#include "runtime/collectives/hierarchical/rounds/attendance.hpp"

#include "base/error.hpp"

namespace runjob::runtime {

Attendance::Attendance(const Topology& topology, Group& group, const FarBoard& board)
    : topology_(topology), group_(group), board_(board) {}

int Attendance::late_rank(std::uint64_t round, const Rounds::IsBusy& is_busy) const {
  for (int rank = 0; rank < topology_.size(); ++rank) {
    if (!has_given(rank, round) && is_busy(rank)) return rank;
  }
  return -1;
}

int Attendance::departed_rank(std::uint64_t round) const {
  for (const int rank : topology_.ranks(topology_.host())) {
    if (group_.has_left(topology_.local_rank_of(rank)) && !has_given(rank, round)) return rank;
  }
  if (!has_departures()) return -1;
  for (int rank = 0; rank < topology_.size(); ++rank) {
    const std::uint64_t after = board_.left_after(rank).load(std::memory_order_acquire);
    if (after != 0 && after - 1 < round) return rank;
  }
  return -1;
}

bool Attendance::has_leader_left(int host) const {
  return board_.left_after(topology_.ranks(host).front()).load(std::memory_order_relaxed) != 0;
}

std::uint64_t Attendance::moves() const {
  std::uint64_t moves = 0;
  for (int rank = 0; rank < topology_.size(); ++rank) moves += board_.moves(rank).load(std::memory_order_relaxed);
  return moves;
}

std::string Attendance::state_here(std::uint64_t round) const {
  std::string bytes;
  for (const int rank : topology_.ranks(topology_.host())) {
    const std::uint64_t moves = board_.moves(rank).load(std::memory_order_relaxed);
    bytes += static_cast<char>(moves << 1 | (has_given(rank, round) ? 1 : 0));
  }
  return bytes;
}

void Attendance::note_begun(std::uint64_t round) const {
  if (round <= board_.begun().load(std::memory_order_relaxed)) return;
  board_.begun().store(round, std::memory_order_seq_cst);
  group_.announce_round();
}

void Attendance::note_state(int host, std::uint64_t round, std::string_view bytes) const {
  const std::vector<int>& ranks = topology_.ranks(host);
  if (bytes.size() != ranks.size())
    throw Error(Errc::kProtocol, "a host has sent a list of ranks that is not as long as its own");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    board_.moves(ranks[i]).store(byte >> 1, std::memory_order_relaxed);
    Step& given = board_.given(ranks[i]);
    if ((byte & 1) != 0 && given.load(std::memory_order_relaxed) < round) given.store(round);
  }
}

void Attendance::note_left(int rank, std::uint64_t round) const {
  if (rank < 0 || rank >= topology_.size())
    throw Error(Errc::kProtocol, "a host has sent the number of a rank that does not exist");
  if (board_.left_after(rank).load(std::memory_order_relaxed) != 0) return;
  board_.left_after(rank).store(1 + round, std::memory_order_seq_cst);
  board_.departures().fetch_add(1, std::memory_order_seq_cst);
  group_.ring_at(group_.rank());
  group_.ring_next_round();
}

}  // namespace runjob::runtime
