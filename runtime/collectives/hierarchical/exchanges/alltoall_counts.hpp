#pragma once

#include <cstddef>
#include <vector>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/memory/pieces.hpp"
#include "runtime/collectives/shm/ring.hpp"

namespace runjob::runtime {

/// Counts or offsets by rank, in bytes.
using ByteCounts = std::vector<std::size_t>;

/// The bytes of `counts` elements of `element` bytes each.
ByteCounts bytes_of(const std::vector<std::size_t>& counts, std::size_t element);
/// The offset of each part in a buffer whose parts follow each other.
ByteCounts offsets_of(const ByteCounts& parts);

/// The bytes that each rank of this host sends to every rank of the job in an alltoall, and receives from it. If all
/// parts are equal, every rank knows them from its own call; otherwise the constructor exchanges them through the ring.
/// Errors  those of Group, of the constructor.
class AlltoallCounts {
 public:
  AlltoallCounts(Ring& ring, const Call& call);

  /// The bytes that the rank with the local rank `local` sends to rank `to`.
  std::size_t sent(int local, int to) const { return at(local, to); }
  /// The bytes that it receives from rank `from`.
  std::size_t received(int local, int from) const { return at(local, size_ + from); }

 private:
  std::size_t at(int local, int index) const {
    return tables_.empty() ? equal_ : tables_[static_cast<std::size_t>(local)][static_cast<std::size_t>(index)];
  }
  std::byte* piece(int local, const Range& range);

  const int size_;
  std::size_t equal_ = 0;           ///< of each part, if all are equal
  std::vector<ByteCounts> tables_;  ///< by local rank: sent, then received; empty if all parts are equal
};

}  // namespace runjob::runtime
