#include "runtime/collectives/hierarchical/rounds/block_exchange.hpp"

#include <chrono>
#include <utility>

#include "base/error.hpp"
#include "runtime/collectives/hierarchical/rounds/message_block.hpp"

namespace runjob::runtime {
namespace {

constexpr std::uintptr_t kMostAlignment = 8;  ///< of an element

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

BlockExchange::BlockExchange(const Topology& topology, Group& group, const FarBoard& board, LeaderLinks& links)
    : topology_(topology),
      group_(group),
      board_(board),
      links_(links),
      way_{topology.host(), topology.hosts()},
      step_(way_.steps()),
      early_(static_cast<std::size_t>(topology.hosts())),
      given_ns_(static_cast<std::size_t>(topology.size())) {}

std::string BlockExchange::begin(LentBlock block) {
  ++round_;
  step_ = 0;
  off_board_.reset();
  links_.send(way_.target(0), {LeaderLinks::Type::kBlocks, round_, block.text}, block.data);
  std::swap(blocks_, block.text);
  if (way_.steps() > 1) blocks_.append(block.data);
  ends_.assign(1, blocks_.size());
  aged_ns_.assign(1, has_ages(blocks_) ? now_ns() : 0);
  advance();
  return std::move(block.text);
}

void BlockExchange::receive(int host, std::uint64_t round, std::string_view blocks) {
  if (is_awaited(host, round)) {
    take(blocks, now_ns(), /*in_frame=*/true);
  } else {
    early_[static_cast<std::size_t>(host)].push_back({round, std::string(blocks), now_ns()});
  }
}

bool BlockExchange::is_awaited(int host, std::uint64_t round) const {
  return !is_complete() && host == source() && round == round_ && early_[static_cast<std::size_t>(host)].empty();
}

void BlockExchange::advance() {
  while (!is_complete()) {
    auto& early = early_[static_cast<std::size_t>(source())];
    if (early.empty()) {
      // A host that has left may have ended before it has passed everything on.
      if (!links_.is_open(source())) throw_rank_lost(topology_.name(topology_.ranks(source()).front()));
      return;
    }
    if (early.front().round != round_) throw Error(Errc::kProtocol, "a host has sent messages of another round");
    const Message message = std::move(early.front());
    early.pop_front();
    take(message.blocks, message.received_ns, /*in_frame=*/false);
  }
}

/// Takes the message of the present step, and sends that of the next one. `in_frame`: the blocks lie in a frame of the
/// source.
void BlockExchange::take(std::string_view blocks, std::int64_t received_ns, bool in_frame) {
  write_on_board(blocks, received_ns, in_frame);
  if (++step_ == way_.steps()) return group_.publish(board_.completed(), round_);
  refresh_ages(way_.blocks(step_));
  const std::size_t end = ends_[static_cast<std::size_t>(way_.blocks(step_)) - 1];
  links_.send(way_.target(step_), {LeaderLinks::Type::kBlocks, round_, std::string_view(blocks_).substr(0, end)});
}

void BlockExchange::write_on_board(std::string_view blocks, std::int64_t received_ns, bool in_frame) {
  std::string_view rest = blocks;
  for (int i = 0; i < way_.blocks(step_); ++i) {
    const int host = (source() + i) % topology_.hosts();
    const std::vector<int>& ranks = topology_.ranks(host);
    const bool with_ages = take_block(
        rest, ranks.size(), FarBoard::most_bytes(board_.ranks()), [&](std::size_t index, const RoundMessage& message) {
          put(ranks[index], message, in_frame);
          // cppcheck-suppress constStatement
          given_ns_[static_cast<std::size_t>(ranks[index])] = received_ns - std::int64_t{message.age_us} * 1000;
        });
    // Rank 0's host asks for ages with its own ones.
    if (host == topology_.host_of(0)) group_.header().notes_times.store(with_ages ? 1 : 0, std::memory_order_relaxed);
    aged_ns_.push_back(received_ns);
    for (const int rank : ranks) board_.given(rank).store(round_, std::memory_order_release);
    ends_.push_back(blocks_.size() + blocks.size() - rest.size());
  }
  if (!rest.empty()) throw Error(Errc::kProtocol, "a host has sent more blocks than it should");
  if (step_ + 1 < way_.steps()) blocks_ += blocks;
}

/// Writes a message on the board. In a job of two ranks nobody else reads it, so it can stay where it was received.
void BlockExchange::put(int rank, const RoundMessage& message, bool in_frame) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(message.bytes.data()) % kMostAlignment == 0;
  if (!in_frame || topology_.size() > 2 || !is_lent(message) || !is_aligned) return board_.put(round_, rank, message);
  board_.put(round_, rank, {.tag = message.tag, .unread = message.bytes.size()});
  links_.keep_frame(topology_.host_of(rank), received_);
  off_board_ = message.bytes;
}

/// Adds the time for which the first `count` blocks have been here to their ages.
void BlockExchange::refresh_ages(int count) {
  std::size_t begin = 0;
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    char* const block = blocks_.data() + begin;
    begin = ends_[index];
    if (!has_ages({block, begin - static_cast<std::size_t>(block - blocks_.data())})) continue;
    const std::int64_t now = now_ns();
    const std::vector<int>& ranks = topology_.ranks((way_.host + i) % topology_.hosts());
    add_age(block, ranks.size(), age_us(aged_ns_[index], now));
    aged_ns_[index] = now;
  }
}

}  // namespace runjob::runtime
