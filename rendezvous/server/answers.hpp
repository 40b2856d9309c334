#pragma once

#include <cstddef>
#include <vector>

#include "rendezvous/protocol.hpp"

namespace runjob::rendezvous {

/// A reply that is due. The tables return these instead of calling them, because a reply may call the service again and
/// must find it consistent.
struct Answer {
  Reply reply;
  Response response;
};
using Answers = std::vector<Answer>;

/// Counts the bytes that all tables of one service hold, and keeps them under kMaxStoredBytes.
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

/// The cost of a table's entry besides its bytes. It is generous, so that many tiny entries are limited too.
inline constexpr std::size_t kEntryBytes = 256;

}  // namespace runjob::rendezvous
