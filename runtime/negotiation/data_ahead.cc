#include "runtime/negotiation/data_ahead.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace runjob::runtime {

void DataAhead::settle(std::optional<std::size_t> agreed, std::size_t ranks) {
  constexpr int kMostShift = 6;
  if (sent_.empty()) {
    if (pause_ > 0 && agreed && serves(*agreed)) --pause_;
    return;
  }
  if (agreed && sent_.size() == ranks) {
    misses_ = 0;
    return sent_.clear();
  }
  misses_ = std::min(misses_ + 1, kMostShift);
  pause_ = 1 << misses_;
  for (const auto& [rank, bytes] : sent_) {
    if (!serves(bytes)) throw Error(Errc::kProtocol, "a rank has sent data ahead that no operation has");
    rounds_.drop_ahead(rank, bytes);
  }
  sent_.clear();
}

/// True for what is too long for a message, and not too long for this.
bool DataAhead::serves(std::size_t bytes) const {
  return bytes > rounds_.most_data_bytes() && bytes <= rounds_.most_ahead_bytes();
}

}  // namespace runjob::runtime
