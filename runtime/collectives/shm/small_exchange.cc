#include "runtime/collectives/shm/small_exchange.hpp"

namespace runjob::runtime {

std::byte* SmallExchange::begin(std::size_t bytes) {
  const std::uint64_t last = step_++;
  if (bytes == 0) return nullptr;
  for (int peer = 0; complete_ < last && peer < group_.size(); ++peer) {
    group_.wait(peer, group_.fields(peer).flags[last % RankFields::kFlags].given, last);
  }
  return message(group_.rank(), bytes);
}

void SmallExchange::give() {
  group_.publish(flag(group_.rank()).given, step_);
}

const std::byte* SmallExchange::take(int peer, std::size_t bytes) {
  group_.wait(peer, flag(peer).given, step_);
  return message(peer, bytes);
}

std::byte* SmallExchange::message(int rank, std::size_t bytes) const {
  return bytes <= FlagLine::kPayloadBytes ? line(rank) : cell(rank, bytes);
}

}  // namespace runjob::runtime
