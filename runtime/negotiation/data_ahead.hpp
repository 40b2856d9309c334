#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/collectives/rounds.hpp"

namespace runjob::runtime {

/// Decides which rank sends the data of an allreduce ahead: behind its announcement, before all ranks have agreed
/// (Rounds::send_ahead()). That saves the time between the round and the data, and costs a message when it was in vain.
/// After that nothing is sent ahead for the next 2, 4, 8 and at last 64 operations for which it could have been and on
/// which all ranks agree at once. The ranks count alike, because they see the same announcements: so all send ahead, or
/// none.
/// Units    bytes of a rank's input, the same on all ranks; 0 for an operation whose input cannot be sent ahead.
/// Owner    the rounds are lent.
/// Threads  one at a time.
class DataAhead {
 public:
  explicit DataAhead(Rounds& rounds) : rounds_(rounds) {}

  /// False where data is never sent ahead.
  bool is_possible() const { return rounds_.most_ahead_bytes() > 0; }
  /// True if this rank sends its input ahead when it announces such an operation alone.
  bool goes(std::size_t bytes) const { return pause_ == 0 && serves(bytes); }

  /// A rank has sent so much ahead in the round that is over.
  void note(int rank, std::size_t bytes) { sent_.emplace_back(rank, bytes); }
  /// To be called in each round after note() for all ranks that have. `agreed`: of the operation that all ranks have
  /// announced alone. Drops what was sent in vain.
  /// Errors  Error(kProtocol): a rank has sent what no operation has.
  void settle(std::optional<std::size_t> agreed, std::size_t ranks);

 private:
  bool serves(std::size_t bytes) const;

  Rounds& rounds_;
  std::vector<std::pair<int, std::size_t>> sent_;  ///< in this round, with the rank
  int misses_ = 0;                                 ///< in a row
  int pause_ = 0;                                  ///< operations for which nothing is sent ahead
};

}  // namespace runjob::runtime
