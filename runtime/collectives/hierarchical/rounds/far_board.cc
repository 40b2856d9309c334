#include "runtime/collectives/hierarchical/rounds/far_board.hpp"

#include <algorithm>

#include "runtime/collectives/copy_bytes.hpp"

namespace runjob::runtime {
namespace {

constexpr std::size_t kLine = 64;
// Measured: measurements.md. A longer input costs more in a message, which copies it. That of one of two ranks is
// not copied, but where it is no summand, it is copied to the output.
constexpr std::size_t kMostDataOfAll = 128u << 10, kMostSummandOfTwo = 1u << 20, kMostOfTwo = 256u << 10;
constexpr std::size_t kMostOfAll = 1u << 20, kLeastBytes = 256, kEnoughBytes = 4096;

std::size_t of_each(std::size_t all, int ranks) {
  return all / static_cast<std::size_t>(ranks);
}

std::size_t round_up(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

std::size_t FarBoard::most_bytes(int ranks) {
  return std::max(std::clamp(of_each(kMostOfAll, ranks), kLeastBytes, kEnoughBytes),
                  most_data_bytes(ranks, Kind::kAllreduce));
}

std::size_t FarBoard::most_data_bytes(int ranks, Kind kind) {
  if (ranks == 2) return kind == Kind::kAllreduce ? kMostSummandOfTwo : kMostOfTwo;
  return of_each(kMostDataOfAll, ranks);
}

std::size_t FarBoard::slot_bytes(int ranks) {
  return round_up(sizeof(Slot) + most_bytes(ranks));
}

/// On lines of their own: a rank that counts its moves takes no line away from those that look at the other words.
std::size_t FarBoard::moves_at(int ranks) {
  return round_up(sizeof(Words) + 2 * static_cast<std::size_t>(ranks) * sizeof(Step));
}

std::size_t FarBoard::words_bytes(int ranks) {
  return moves_at(ranks) + round_up(static_cast<std::size_t>(ranks) * sizeof(Step));
}

std::size_t FarBoard::bytes(int ranks) {
  return words_bytes(ranks) + kPlaces * static_cast<std::size_t>(ranks) * slot_bytes(ranks);
}

void FarBoard::put(std::uint64_t round, int rank, const RoundMessage& message) const {
  Slot& place = slot(round, rank);
  place = {static_cast<std::uint32_t>(message.size()), message.tag};
  auto* to = reinterpret_cast<std::byte*>(&place + 1);
  copy_bytes(to, message.bytes.data(), message.bytes.size());
  to += message.bytes.size() + message.unread;
  copy_bytes(to, message.rest.data(), message.rest.size());
}

}  // namespace runjob::runtime
