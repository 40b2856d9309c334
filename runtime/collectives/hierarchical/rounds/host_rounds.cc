#include "runtime/collectives/hierarchical/rounds/host_rounds.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "runtime/collectives/hierarchical/exchanges/tree_reduction.hpp"

namespace runjob::runtime {
namespace {

/// A leader that has waited for so long asks around who has come, and again after as long.
constexpr std::chrono::milliseconds kQuestionAfter{200};

}  // namespace

HostRounds::HostRounds(const Topology& topology, Group& group, ShmRounds& local, const FarBoard& board,
                       LeaderExchange* exchange, const Options& options)
    : topology_(topology), group_(group), local_(local), board_(board), exchange_(exchange), options_(options) {}

void HostRounds::give_without(std::uint32_t tag, std::span<const std::byte> bytes, Part unread) {
  unread_ = unread;
  waits_since_.reset();
  ++round_;
  board_.given(topology_.rank()).store(round_, std::memory_order_release);  // first: who sees the message sees this
  local_.give_without(tag, bytes, unread);
}

bool HostRounds::collect(Deadline deadline, const IsBusy& is_busy) {
  return exchange_ == nullptr ? collect_as_member(deadline, is_busy) : collect_as_leader(deadline, is_busy);
}

bool HostRounds::collect_as_member(Deadline deadline, const IsBusy& is_busy) {
  constexpr int kLeader = 0;
  if (group_.look(kLeader, board_.heard(), round_)) return true;
  const auto is_there = [this] { return board_.heard().load(std::memory_order_seq_cst) >= round_ || has_departed(); };
  for (;;) {
    group_.sleep_at(kLeader, is_there, next_look(deadline, is_busy));
    if (is_heard()) return true;
    throw_if_departed();
    if (is_over(deadline, is_busy)) return false;
  }
}

bool HostRounds::collect_as_leader(Deadline deadline, const IsBusy& is_busy) {
  if (exchange_->round() < round_ && !collect_host(deadline, is_busy)) return false;
  const LeaderExchange::Attention attention(*exchange_);
  if (exchange_->round() < round_) {
    const bool is_first = board_.begun().load(std::memory_order_acquire) < round_;
    memory_ = exchange_->begin(block());
    if (is_first && awaits_others(is_busy)) exchange_->tell_begun();
  }
  return exchange_->advance() || collect_hosts(deadline, is_busy);
}

/// The messages of this host's ranks.
bool HostRounds::collect_host(Deadline deadline, const IsBusy& is_busy) {
  const std::vector<int>& ranks = topology_.ranks(topology_.host());
  const auto is_local_busy = [&](int local) { return is_busy(ranks[static_cast<std::size_t>(local)]); };
  for (;;) {
    try {
      if (local_.collect(Clock::time_point(), is_local_busy)) return true;  // most often, without asking for the time
      if (local_.collect(next_look(deadline, is_busy), is_local_busy)) return true;
    } catch (const Error& error) {
      if (error.code() == Errc::kPeerLost) tell_departures();
      throw;
    }
    throw_if_departed();
    if (is_over(deadline, is_busy)) return false;
  }
}

/// Those of the others'.
bool HostRounds::collect_hosts(Deadline deadline, const IsBusy& is_busy) {
  for (;;) {
    if (exchange_->advance()) return true;
    throw_if_departed();
    group_.check();
    exchange_->wait(next_look(deadline, is_busy));
    if (is_over(deadline, is_busy)) return exchange_->advance();
  }
}

std::vector<RoundMessage> HostRounds::own_messages(bool with_ages) const {
  const std::int64_t now = with_ages ? Clock::now().time_since_epoch() / std::chrono::nanoseconds(1) : 0;
  std::vector<RoundMessage> messages;
  for (int local = 0; local < topology_.local_size(); ++local) {
    const std::int64_t given = with_ages ? local_.given_at(local) : 0;
    messages.push_back({local_.tag(local), local_.message(local), given == 0 ? 0 : age_us(given, now)});
  }
  if (unread_.bytes == 0 || messages.size() > 1) return messages;
  RoundMessage& alone = messages.front();
  alone.unread = unread_.bytes;
  alone.rest = alone.bytes.subspan(unread_.first + unread_.bytes);
  alone.bytes = alone.bytes.first(unread_.first);
  return messages;
}

std::string HostRounds::block() {
  const bool with_ages = group_.header().notes_times.load(std::memory_order_relaxed) != 0;
  return encode_block(own_messages(with_ages), with_ages, std::move(memory_));
}

/// Whether a host may have to be woken for this round although it would hear of it only from one that hears of it by and by.
bool HostRounds::awaits_others(const IsBusy& is_busy) const {
  if (topology_.hosts() <= 2) return false;
  for (int rank = 0; rank < topology_.size(); ++rank) {
    if (!is_here(rank) && is_busy(rank)) return true;
  }
  return false;
}

/// The time until which a wait need not do anything by itself.
Rounds::Clock::time_point HostRounds::next_look(Deadline deadline, const IsBusy& is_busy) {
  const auto now = Clock::now();
  if (!waits_since_) {
    waits_since_ = now;
    next_question_ = now + kQuestionAfter;
  }
  Clock::time_point next = deadline.value_or(Clock::time_point::max());
  if (exchange_ != nullptr) next = std::min(next, next_question_);
  return late_rank(is_busy) < 0 ? next : std::min(next, *waits_since_ + options_.timeout);
}

/// Whether the deadline has passed. Asks around when it is time to.
/// Errors  Error(kTimeout) when a rank should have come by now.
bool HostRounds::is_over(Deadline deadline, const IsBusy& is_busy) {
  const auto now = Clock::now();
  const int late = late_rank(is_busy);
  if (late >= 0 && now >= *waits_since_ + options_.timeout) throw_rank_timeout(late, options_.timeout);
  if (exchange_ != nullptr && now >= next_question_) {
    exchange_->ask(round_);
    next_question_ = now + kQuestionAfter;
  }
  return deadline && now >= *deadline;
}

/// A rank that must come and has not; -1 for none.
int HostRounds::late_rank(const IsBusy& is_busy) const {
  for (int rank = 0; rank < topology_.size(); ++rank) {
    if (!has_given(rank) && is_busy(rank)) return rank;
  }
  return -1;
}

bool HostRounds::has_given(int rank) const {
  return board_.given(rank).load(std::memory_order_acquire) >= round_;
}

std::uint32_t HostRounds::tag(int rank) const {
  return is_here(rank) ? local_.tag(topology_.local_rank_of(rank)) : board_.tag(round_, rank);
}

std::span<const std::byte> HostRounds::message(int rank) const {
  return is_here(rank) ? local_.message(topology_.local_rank_of(rank)) : board_.message(round_, rank);
}

std::int64_t HostRounds::given_at(int rank) const {
  if (is_here(rank)) return local_.given_at(topology_.local_rank_of(rank));
  return exchange_ == nullptr ? 0 : exchange_->given_at(rank);
}

bool HostRounds::is_awaited() const {
  return board_.begun().load(std::memory_order_seq_cst) > round_ ||
         board_.departures().load(std::memory_order_seq_cst) != 0 || local_.is_awaited();
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
  if (exchange_ != nullptr) exchange_->tell_left(topology_.rank(), board_.given(topology_.rank()).load());
  local_.leave();
  group_.ring_at(0);  // where the other ranks of this host wait, and the leader for those of others
  if (exchange_ != nullptr) exchange_->interrupt();
}

/// Whether a rank has left without giving its message of this round.
bool HostRounds::has_departed() const {
  const std::vector<int>& ranks = topology_.ranks(topology_.host());
  for (int local = 0; local < topology_.local_size(); ++local) {
    if (group_.has_left(local) && !has_given(ranks[static_cast<std::size_t>(local)])) return true;
  }
  if (board_.departures().load(std::memory_order_seq_cst) == 0) return false;
  for (int rank = 0; rank < topology_.size(); ++rank) {
    const std::uint64_t after = board_.left_after(rank).load(std::memory_order_acquire);
    if (after != 0 && after - 1 < round_) return true;
  }
  return false;
}

void HostRounds::throw_if_departed() const {
  if (!has_departed()) return;
  for (int rank = 0; rank < topology_.size(); ++rank) {
    const std::uint64_t after = board_.left_after(rank).load(std::memory_order_acquire);
    const bool is_lost = is_here(rank) ? group_.has_left(topology_.local_rank_of(rank)) && !has_given(rank)
                                       : after != 0 && after - 1 < round_;
    if (is_lost) throw_rank_lost(rank);
  }
}

/// Of this host's ranks: the others cannot see it.
void HostRounds::tell_departures() const {
  for (const int rank : topology_.ranks(topology_.host())) {
    if (group_.has_left(topology_.local_rank_of(rank))) exchange_->tell_left(rank, board_.given(rank).load());
  }
}

}  // namespace runjob::runtime
