#pragma once

#include <cstddef>
#include <vector>

#include "rendezvous/protocol.hpp"

namespace runjob::rendezvous {

/// A reply that is due. The tables return these instead of calling them, so that a reply which asks the
/// service again finds it whole.
struct Answer {
  Reply reply;
  Response response;
};
using Answers = std::vector<Answer>;

/// The bytes that one service holds, of all its tables, kept under kMaxStoredBytes.
class StoredBytes {
 public:
  [[nodiscard]] bool take(std::size_t bytes) {
    if (bytes > kMaxStoredBytes - used_) return false;
    used_ += bytes;
    return true;
  }
  void give_back(std::size_t bytes) { used_ -= bytes; }
  std::size_t used() const { return used_; }

 private:
  std::size_t used_ = 0;
};

/// What an entry of a table costs besides its bytes; generous, so that many tiny ones are bounded too.
inline constexpr std::size_t kEntryBytes = 256;

}  // namespace runjob::rendezvous
