#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/collectives/rounds.hpp"

namespace runjob::runtime {

/// Decides which rank sends the data of an operation ahead: behind its announcement, before all ranks have agreed
/// (Rounds::send_ahead()). That saves the time between the round and the data, and costs a message when it was in vain.
/// After that nothing is sent ahead for the next 2, 4, 8 and at last 64 operations for which it could have been and on
/// which all ranks agree at once. The ranks count alike, because they see the same announcements: so all send ahead, or
/// none.
/// Units    bytes.
/// Owner    the rounds are lent.
/// Threads  one at a time.
class DataAhead {
 public:
  /// The sizes of an operation, the same on all ranks: the largest input of any rank, and the most that any of them
  /// sends ahead, which is 0 for an operation of which nothing can be sent ahead.
  struct Size {
    std::size_t input = 0, most = 0;
  };

  explicit DataAhead(Rounds& rounds) : rounds_(rounds) {}

  /// False where data is never sent ahead.
  bool is_possible() const { return rounds_.most_ahead_bytes() > 0; }
  /// True if this rank sends data ahead when it announces an operation of this size alone.
  bool goes(const Size& size) const { return pause_ == 0 && serves(size); }

  /// A rank has sent so much ahead for an operation of this size in the round that is over.
  /// Errors  Error(kProtocol): no operation of this size has anything ahead.
  void note(int rank, const Size& size, std::size_t bytes);
  /// To be called in each round after note() for all ranks that have. `agreed`: of the operation that all ranks have
  /// announced alone. Drops what was sent in vain.
  void settle(const std::optional<Size>& agreed, std::size_t ranks);

 private:
  bool serves(const Size& size) const;

  Rounds& rounds_;
  std::vector<std::pair<int, std::size_t>> sent_;  ///< in this round, with the rank
  int misses_ = 0;                                 ///< in a row
  int pause_ = 0;                                  ///< operations for which nothing is sent ahead
};

}  // namespace runjob::runtime
