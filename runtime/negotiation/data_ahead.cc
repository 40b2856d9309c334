#include "runtime/negotiation/data_ahead.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace runjob::runtime {

void DataAhead::note(int rank, const Size& size, std::size_t bytes) {
  if (!serves(size)) throw Error(Errc::kProtocol, "a rank has sent data ahead that no operation has");
  sent_.emplace_back(rank, bytes);
}

void DataAhead::settle(const std::optional<Size>& agreed, std::size_t ranks) {
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
  for (const auto& [rank, bytes] : sent_) rounds_.drop_ahead(rank, bytes);
  sent_.clear();
}

/// True for an operation whose inputs are too long for the messages, and whose parts are not too long for this.
bool DataAhead::serves(const Size& size) const {
  return size.most > 0 && size.input > rounds_.most_data_bytes() && size.most <= rounds_.most_ahead_bytes();
}

}  // namespace runjob::runtime
