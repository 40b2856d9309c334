#include "runtime/messages/message_exchange.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/control/fork_guard.hpp"
#include "runtime/life/goodbye.hpp"

namespace runjob::runtime {
namespace {

/// Room for what is read at once from a connection.
constexpr std::size_t kScratchBytes = 64u << 10;
/// While ranks leave, the news that one was lost may still be on its way.
constexpr std::chrono::milliseconds kVerdictOfLeavers{300};

LinkPlan plan_of(const MessageTerms& terms) {
  LinkPlan plan;
  plan.own = terms.rank;
  plan.purpose = "messages between ranks";
  plan.key = terms.key;
  plan.encrypts = terms.encrypts;
  for (int rank = 0; rank < static_cast<int>(terms.addresses.size()); ++rank) {
    if (rank == terms.rank) continue;
    plan.peers[rank] = {terms.addresses[static_cast<std::size_t>(rank)], rank_text(rank, terms.members)};
  }
  return plan;
}

}  // namespace

MessageExchange::MessageExchange(MessageTerms terms)
    : terms_(std::move(terms)), in_flight_(terms_.rank, terms_.members), scratch_(kScratchBytes) {
  if (!terms_.listener) return;
  fork_guard::add(terms_.listener->socket.get());
  setup_ = std::make_unique<LinkSetup>(terms_.listener->socket.get(), plan_of(terms_));
}

MessageExchange::~MessageExchange() {
  end(Status(Errc::kAborted, "the job is over"));
}

MessagePeer& MessageExchange::peer(int rank) {
  std::unique_ptr<MessagePeer>& found = peers_[rank];
  if (!found) {
    const std::vector<int>& hosts = terms_.hosts;
    const bool is_near = hosts[static_cast<std::size_t>(rank)] == hosts[static_cast<std::size_t>(terms_.rank)];
    found = std::make_unique<MessagePeer>(rank, terms_.may_read && is_near, queue_, in_flight_);
  }
  return *found;
}

void MessageExchange::begin(const SharedOperation& operation) {
  operation->number = next_number_++;
  in_flight_.add(operation);
  if (!closed_.ok()) return in_flight_.failed(operation, closed_);
  const bool has_peer = operation->peer != MessageOperation::kAnyPeer && operation->peer != terms_.rank;
  if (has_peer) {
    MessagePeer& other = peer(operation->peer);
    if (const std::optional<Status> complaint = other.take_complaint(operation->key.set))
      return in_flight_.failed(operation, *complaint);
    if (!other.is_connected() && other.gone().ok()) setup_->connect_to(operation->peer);
  }
  if (!operation->is_send) {
    receive(operation);
  } else if (has_peer) {
    try {
      peer(operation->peer).send(operation);
    } catch (const Error&) {
      // move() meets the error again, and knows what to do
    }
  } else {
    send_to_self(operation);
  }
  if (!has_peer || !in_flight_.contains(operation)) return;
  if (const auto why = ended_.find(operation->peer); why != ended_.end()) end_operation(operation, why->second);
}

void MessageExchange::send_to_self(const SharedOperation& send) {
  EarlyMessage message{terms_.rank,
                       {.type = FrameType::kAsk, .set = send->key.set, .tag = send->key.tag, .bytes = send->bytes},
                       nullptr};
  message.frame.id = send->number;
  message.send = send;
  if (const SharedOperation receive = queue_.take_receive(terms_.rank, send->key)) {
    receive->peer = terms_.rank;
    return deliver_own(receive, message);
  }
  if (send->bytes <= kMostEagerBytes) {
    message.data = std::make_unique_for_overwrite<std::byte[]>(send->bytes);
    if (send->bytes > 0) copy_bytes(message.data.get(), send->buffer, send->bytes);
    message.send = nullptr;
    in_flight_.sent(send);
  }
  queue_.keep(send->key, std::move(message));
}

void MessageExchange::deliver_own(const SharedOperation& receive, const EarlyMessage& message) {
  const std::size_t bytes = message.frame.bytes;
  if (bytes > receive->bytes) {
    if (message.send)
      in_flight_.failed(message.send, in_flight_.refused_by(terms_.rank, message.frame.tag, bytes, receive->bytes));
    return in_flight_.too_long(receive, terms_.rank, bytes);
  }
  if (bytes > 0) copy_bytes(receive->buffer, message.send ? message.send->buffer : message.data.get(), bytes);
  if (message.send) in_flight_.sent(message.send);
  in_flight_.received(receive, terms_.rank, bytes);
}

void MessageExchange::receive(const SharedOperation& receive) {
  bool is_found = false;
  std::optional<EarlyMessage> message = queue_.take_message(receive, is_found);
  if (!is_found) {
    if (receive->peer == MessageOperation::kAnyPeer) check_any_source(receive);
    return;
  }
  if (!message) return;
  if (message->peer == terms_.rank) return deliver_own(receive, *message);
  try {
    peer(message->peer).deliver(receive, *std::move(message));
  } catch (const Error&) {
    // move() meets the error again, and knows what to do
  }
}

/// While ranks leave, a receive from any rank needs to know which ones. It ends when no other one is left.
void MessageExchange::check_any_source(const SharedOperation& receive) {
  if (!has_leavers_ && ended_.empty()) return;
  const Status* why = nullptr;
  bool has_others = false;
  for (const int rank : *receive->ranks) {
    if (rank == terms_.rank) continue;
    const auto found = ended_.find(rank);
    if (found != ended_.end()) {
      why = &found->second;
      continue;
    }
    if (peer(rank).gone().ok() && !peer(rank).is_connected()) setup_->connect_to(rank);
    has_others = true;
  }
  if (why != nullptr && !has_others) end_operation(receive, *why);
}

void MessageExchange::end_operation(const SharedOperation& operation, const Status& why) {
  if (const auto found = peers_.find(operation->peer); found != peers_.end()) {
    found->second->withdraw(operation, why);
  } else {
    queue_.withdraw(operation);
    if (operation->is_send) queue_.drop(terms_.rank, operation->number);
  }
  const Status reason =
      is_goodbye(why) ? with_operation(why, in_flight_.name(terms_.rank), in_flight_.text(*operation)) : why;
  in_flight_.failed(operation, reason);
}

void MessageExchange::end_set(std::int64_t set, const Status& why) {
  for (const SharedOperation& each :
       in_flight_.find([set](const MessageOperation& operation) { return operation.key.set == set; }))
    end_operation(each, why);
  for (const auto& [rank, bytes] : queue_.drop_set(set)) {
    if (rank != terms_.rank) peer(rank).dropped(bytes);
  }
}

void MessageExchange::end_all(const Status& why) {
  for (const SharedOperation& each : in_flight_.find([](const MessageOperation&) { return true; }))
    end_operation(each, why);
}

void MessageExchange::end(const Status& why) {
  if (!closed_.ok()) return;
  closed_ = why;
  for (const auto& [rank, each] : peers_) each->lose(why);  // first: then nobody reads a buffer that is given back
  setup_.reset();
  if (terms_.listener) fork_guard::close(terms_.listener->socket.release());
  for (const SharedOperation& each : in_flight_.find([](const MessageOperation&) { return true; })) {
    queue_.withdraw(each);
    in_flight_.failed(each, with_operation(why, in_flight_.name(terms_.rank), in_flight_.text(*each)));
  }
}

void MessageExchange::someone_leaves() {
  has_leavers_ = true;
  for (const SharedOperation& each :
       in_flight_.find([](const MessageOperation& operation) { return operation.peer == MessageOperation::kAnyPeer; }))
    check_any_source(each);
}

void MessageExchange::say_goodbye(const Status& why) {
  for (const auto& [rank, each] : peers_) each->say_goodbye(why);
}

void MessageExchange::accept() {
  if (setup_) setup_->move({});
}

void MessageExchange::watch(std::vector<pollfd>& descriptors) {
  watched_.clear();
  setup_descriptors_ = 0;
  if (!setup_) return;
  const std::size_t before = descriptors.size();
  setup_->watch(descriptors);
  setup_descriptors_ = descriptors.size() - before;
  for (const auto& [rank, each] : peers_) {
    if (!each->is_connected()) continue;
    const int wanted = POLLIN | (each->has_unsent() ? POLLOUT : 0);
    descriptors.push_back({each->socket(), static_cast<short>(wanted), 0});
    watched_.push_back(each.get());
  }
}

bool MessageExchange::move(std::span<const pollfd> descriptors, Clock::time_point now) {
  if (!setup_) return false;
  bool has_moved = false;
  const std::span<const pollfd> of_peers = descriptors.subspan(setup_descriptors_);
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    const short events = of_peers[i].revents;
    if (events == 0 && !watched_[i]->has_reads()) continue;
    has_moved |= move_peer(*watched_[i], (events & ~POLLOUT) != 0, now);
  }
  move_setup(descriptors.first(setup_descriptors_), now);
  if (now >= next_look_) {
    next_look_ = now + SilenceWatch::kLookEvery;
    look(now);
  }
  for (auto each = verdicts_.begin(); each != verdicts_.end();) {
    const bool is_due = now >= each->second || !has_judge_;
    if (is_due) end_peer(peer(each->first));
    each = is_due ? verdicts_.erase(each) : std::next(each);
  }
  return has_moved;
}

void MessageExchange::move_setup(std::span<const pollfd> descriptors, Clock::time_point now) {
  setup_->move(descriptors);
  for (auto& [rank, stream] : setup_->take_links()) {
    peer(rank).connect(std::move(stream));
    move_peer(peer(rank), /*can_receive=*/true, now);
  }
  for (const auto& [rank, why] : setup_->take_failures()) {
    if (why.code() != Errc::kConnect) broken_.push_back(why);
    peer(rank).lose(why);
    on_gone(peer(rank), now);
  }
}

bool MessageExchange::move_peer(MessagePeer& peer, bool can_receive, Clock::time_point now) {
  try {
    const bool has_moved = peer.move(can_receive, scratch_);
    if (!peer.gone().ok()) on_gone(peer, now);
    return has_moved;
  } catch (const Error& error) {
    const Status why(error.code(), fmt::format("{}: {}", in_flight_.name(peer.rank()), error.what()));
    if (error.code() != Errc::kPeerLost) broken_.push_back(why);
    peer.lose(why);
    on_gone(peer, now);
    return true;
  }
}

/// At the hosts of the ranks that operations wait for.
void MessageExchange::look(Clock::time_point now) {
  for (const auto& [rank, each] : peers_) {
    const int of_peer = rank;
    const bool is_awaited =
        each->has_unsent() ||
        !in_flight_.find([of_peer](const MessageOperation& operation) { return operation.takes_from(of_peer); })
             .empty();
    if (!is_awaited) continue;
    const std::optional<std::string> silence = each->look(now);
    if (!silence) continue;
    const Status why(Errc::kPeerLost, fmt::format("{}: {}", in_flight_.name(rank), *silence));
    broken_.push_back(why);
    each->lose(why);
    on_gone(*each, now);
  }
}

void MessageExchange::on_gone(MessagePeer& peer, Clock::time_point now) {
  const int rank = peer.rank();
  if (ended_.contains(rank) || verdicts_.contains(rank)) return;
  if (peer.has_said_goodbye()) return end_peer(peer);
  verdicts_.emplace(rank, now + (has_leavers_ ? Clock::duration(kVerdictOfLeavers) : Clock::duration(kMostVerdict)));
}

void MessageExchange::end_peer(MessagePeer& peer) {
  const int rank = peer.rank();
  ended_.emplace(rank, peer.gone());
  for (const SharedOperation& each :
       in_flight_.find([rank](const MessageOperation& operation) { return operation.peer == rank; }))
    end_operation(each, peer.gone());
  for (const SharedOperation& each :
       in_flight_.find([](const MessageOperation& operation) { return operation.peer == MessageOperation::kAnyPeer; }))
    check_any_source(each);
}

bool MessageExchange::has_unsent() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const auto& each) { return each.second->has_unsent(); });
}

std::optional<MessageExchange::Clock::time_point> MessageExchange::deadline(Clock::time_point now) const {
  if (!setup_) return std::nullopt;
  std::optional<Clock::time_point> due;
  const auto add = [&due](Clock::time_point at) { due = std::min(at, due.value_or(at)); };
  if (std::any_of(peers_.begin(), peers_.end(), [](const auto& each) { return each.second->has_reads(); })) add(now);
  if (is_busy()) add(next_look_);
  if (const auto most = setup_->most_sleep()) add(now + *most);
  for (const auto& [rank, at] : verdicts_) add(at);
  return due;
}

}  // namespace runjob::runtime
