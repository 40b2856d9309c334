#include "runtime/collectives/hierarchical/rounds/host_rounds.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "runtime/collectives/hierarchical/exchanges/tree_reduction.hpp"

namespace runjob::runtime {
namespace {

/// The messages of this host's ranks. `lent`: in place of that of a lone rank, unless it is null.
std::vector<RoundMessage> messages_of_host(const ShmRounds& local, int ranks, bool with_ages,
                                           const std::optional<RoundMessage>& lent) {
  const std::int64_t now = with_ages ? Rounds::Clock::now().time_since_epoch() / std::chrono::nanoseconds(1) : 0;
  std::vector<RoundMessage> messages;
  for (int rank = 0; rank < ranks; ++rank) {
    RoundMessage& message = messages.emplace_back(lent ? *lent : RoundMessage{local.tag(rank), local.message(rank)});
    const std::int64_t given = with_ages ? local.given_at(rank) : 0;
    message.age_us = given == 0 ? 0 : age_us(given, now);
  }
  return messages;
}

/// True when a busy rank may wait for this round on a host that the blocks reach only after several steps.
bool must_wake_others(const Topology& topology, const Rounds::IsBusy& is_busy) {
  if (topology.hosts() <= 2) return false;
  for (int rank = 0; rank < topology.size(); ++rank) {
    if (!topology.is_here(rank) && is_busy(rank)) return true;
  }
  return false;
}

}  // namespace

HostRounds::HostRounds(const Topology& topology, Group& group, ShmRounds& local, const FarBoard& board,
                       LeaderExchange* exchange, const Options& options)
    : topology_(topology),
      group_(group),
      local_(local),
      board_(board),
      attendance_(topology, group, board),
      exchange_(exchange),
      most_data_bytes_(options.most_data_bytes),
      wait_(attendance_, exchange, options.timeout) {}

void HostRounds::give(std::uint32_t tag, std::span<const std::byte> bytes) {
  begin_round();
  local_.give(tag, bytes);
}

/// The copy in shared memory is for the other ranks of this host: a lone rank needs none.
void HostRounds::give_input(std::uint32_t tag, std::span<const std::byte> input, Part unread) {
  begin_round();
  if (topology_.local_size() > 1) return local_.give_input(tag, input, unread);
  lent_ = {.tag = tag, .bytes = input};
  if (unread.bytes != 0) {
    lent_->bytes = input.first(unread.first);
    lent_->unread = unread.bytes;
    lent_->rest = input.subspan(unread.first + unread.bytes);
  }
  local_.give(tag, {});
}

void HostRounds::begin_round() {
  lent_.reset();
  wait_.begin(++round_);
  board_.given(topology_.rank())
      .store(round_, std::memory_order_release);  // first: a rank that sees the message sees this
}

bool HostRounds::collect(Deadline deadline, const IsBusy& is_busy) {
  return exchange_ == nullptr ? collect_as_member(deadline, is_busy) : collect_as_leader(deadline, is_busy);
}

bool HostRounds::collect_as_member(Deadline deadline, const IsBusy& is_busy) {
  constexpr int kLeader = 0;
  if (group_.look(kLeader, board_.completed(), round_)) return true;
  const auto may_go_on = [this] {
    return board_.completed().load(std::memory_order_seq_cst) >= round_ || attendance_.departed_rank(round_) >= 0;
  };
  for (;;) {
    group_.sleep_at(kLeader, may_go_on, wait_.next_look(deadline, is_busy));
    if (board_.completed().load(std::memory_order_acquire) >= round_) return true;
    throw_if_departed();
    if (wait_.is_over(deadline, is_busy)) return false;
  }
}

bool HostRounds::collect_as_leader(Deadline deadline, const IsBusy& is_busy) {
  if (exchange_->round() < round_ && !collect_host(deadline, is_busy)) return false;
  const LeaderExchange::Attention attention(*exchange_);
  if (exchange_->round() < round_) {
    const bool is_first = board_.begun().load(std::memory_order_acquire) < round_;
    const bool with_ages = group_.header().notes_times.load(std::memory_order_relaxed) != 0;
    const auto messages = messages_of_host(local_, topology_.local_size(), with_ages, lent_);
    memory_ = exchange_->begin(encode_block(messages, with_ages, std::move(memory_)));
    if (is_first && must_wake_others(topology_, is_busy)) exchange_->announce_begun();
  }
  return exchange_->advance() || collect_hosts(deadline, is_busy);
}

/// Collects the messages of this host's ranks.
bool HostRounds::collect_host(Deadline deadline, const IsBusy& is_busy) {
  const auto is_never_late = [](int) { return false; };  // wait_ has the time limit of all ranks
  for (;;) {
    try {
      if (local_.collect(Clock::time_point(), is_never_late)) return true;  // most often, without a look at the clock
      if (local_.collect(wait_.next_look(deadline, is_busy), is_never_late)) return true;
    } catch (const Error& error) {
      if (error.code() == Errc::kPeerLost) announce_departures();
      throw;
    }
    throw_if_departed();
    if (wait_.is_over(deadline, is_busy)) return false;
  }
}

/// Collects the messages of the other hosts' ranks.
bool HostRounds::collect_hosts(Deadline deadline, const IsBusy& is_busy) {
  for (;;) {
    if (exchange_->advance()) return true;
    throw_if_departed();
    group_.check();
    exchange_->wait(wait_.next_look(deadline, is_busy));
    if (wait_.is_over(deadline, is_busy)) return exchange_->advance();
  }
}

bool HostRounds::has_given(int rank) const {
  return attendance_.has_given(rank, round_);
}

std::uint32_t HostRounds::tag(int rank) const {
  return topology_.is_here(rank) ? local_.tag(topology_.local_rank_of(rank)) : board_.tag(round_, rank);
}

std::span<const std::byte> HostRounds::message(int rank) const {
  if (topology_.is_here(rank)) return local_.message(topology_.local_rank_of(rank));
  return topology_.size() == 2 ? exchange_->message(rank) : board_.message(round_, rank);
}

std::int64_t HostRounds::given_at(int rank) const {
  if (topology_.is_here(rank)) return local_.given_at(topology_.local_rank_of(rank));
  return exchange_ == nullptr ? 0 : exchange_->given_at(rank);
}

bool HostRounds::is_awaited() const {
  return board_.begun().load(std::memory_order_seq_cst) > round_ || attendance_.has_departures() || local_.is_awaited();
}

void HostRounds::wait(Deadline deadline) {
  const auto is_over = [this] { return nudged_.load(std::memory_order_seq_cst) || is_awaited(); };
  if (exchange_ != nullptr) exchange_->expect_absence();
  group_.wait_for_round(is_over, deadline.value_or(Clock::time_point::max()));
  nudged_.store(false, std::memory_order_seq_cst);
}

const char* HostRounds::activity(Kind kind) const {
  switch (kind) {
    case Kind::kAllreduce:
      return "HOSTS_ALLREDUCE";
    case Kind::kAllgather:
      return "HOSTS_ALLGATHER";
    case Kind::kBroadcast:
      return "HOSTS_BCAST";
    case Kind::kAlltoall:
      return "HOSTS_ALLTOALL";
    case Kind::kReducescatter:
      return "HOSTS_REDUCESCATTER";
    case Kind::kBarrier:
    case Kind::kJoin:
      break;
  }
  return nullptr;
}

void HostRounds::reduce(const Call& call, std::span<const void* const> inputs, std::size_t count) const {
  tree_reduce(topology_, call, inputs, count);
}

void HostRounds::nudge() {
  nudged_.store(true, std::memory_order_seq_cst);
  group_.ring_next_round();
}

void HostRounds::leave() {
  if (exchange_ != nullptr) exchange_->announce_left(topology_.rank(), board_.given(topology_.rank()).load());
  local_.leave();
  group_.ring_at(0);  // where the other ranks of this host wait, and the leader for those of other hosts
  if (exchange_ != nullptr) exchange_->interrupt();
}

void HostRounds::throw_if_departed() const {
  if (const int rank = attendance_.departed_rank(round_); rank >= 0) throw_rank_lost(topology_.name(rank));
}

bool HostRounds::announce_departures() {
  if (exchange_ == nullptr) return false;
  bool more_may_leave = false;
  for (const int rank : topology_.ranks(topology_.host())) {
    if (rank == topology_.rank()) continue;  // leave() does it
    const bool has_left = group_.has_left(topology_.local_rank_of(rank));
    if (has_left) exchange_->announce_left(rank, board_.given(rank).load());
    more_may_leave |= !has_left;
  }
  return more_may_leave;
}

}  // namespace runjob::runtime
