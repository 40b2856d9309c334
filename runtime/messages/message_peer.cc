#include "runtime/messages/message_peer.hpp"

#include <algorithm>
#include <sys/random.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/shm/memory/process_memory.hpp"

namespace runjob::runtime {
namespace {

/// So many bytes are read in the peer's memory before the other messages move on.
constexpr std::size_t kMostAtOnce = 4u << 20;
/// More than an honest rank has in flight, or sets in which it has failed.
constexpr std::size_t kMostAsks = 1u << 20, kMostComplaints = 1u << 12;
/// In a kGoodbye, as `id`: the rank has failed.
constexpr std::uint64_t kFailed = 1;

std::size_t cost_of(std::size_t bytes) {
  return sizeof(Frame) + bytes;
}

[[noreturn]] void refuse_frame(const std::string& what) {
  throw Error(Errc::kProtocol, what);
}

Frame text_frame(FrameType type, std::uint64_t id, const std::string& text) {
  return {.type = type, .bytes = std::min(text.size(), kMostTextBytes), .id = id};
}

}  // namespace

MessagePeer::MessagePeer(int rank, bool may_read, MessageQueue& queue, MessagesInFlight& in_flight)
    : rank_(rank), may_read_(may_read), queue_(queue), in_flight_(in_flight) {}

void MessagePeer::connect(LinkStream stream) {
  if (!gone_.ok()) return;
  link_ = std::make_unique<MessageLink>(std::move(stream));
  if (may_read_) {
    if (::getrandom(&token_, sizeof token_, 0) != sizeof token_) token_ = reinterpret_cast<std::uintptr_t>(this);
    link_->send({.type = FrameType::kToken,
                 .tag = static_cast<std::int64_t>(token_),
                 .id = static_cast<std::uint64_t>(::getpid()),
                 .address = reinterpret_cast<std::uintptr_t>(&token_)});
  }
  for (const SharedOperation& each : std::exchange(waiting_, {})) start(each);
}

void MessagePeer::send(const SharedOperation& operation) {
  if (!gone_.ok()) return;  // it ends with the reason
  if (!is_connected()) {
    waiting_.push_back(operation);
    return;
  }
  start(operation);
  write();
}

/// Queues a message, or asks for leave to send it.
void MessagePeer::start(const SharedOperation& send) {
  Frame frame{.type = FrameType::kEager, .set = send->key.set, .tag = send->key.tag, .bytes = send->bytes};
  if (send->bytes <= kMostEagerBytes && untaken_ + cost_of(send->bytes) <= kMostUntaken) {
    untaken_ += cost_of(send->bytes);
    sending_.emplace(send.get(), send);
    link_->send(frame, send->buffer, send.get());
    return;
  }
  frame.type = FrameType::kAsk;
  frame.id = send->number;
  frame.address = reinterpret_cast<std::uintptr_t>(send->buffer);
  asked_.emplace(send->number, send);
  link_->send(frame);
}

void MessagePeer::write() {
  std::vector<MessageLink::Sender> done;
  link_->write(done);
  for (const MessageLink::Sender sender : done) {
    const auto found = sending_.find(sender);
    if (found == sending_.end()) continue;
    in_flight_.sent(found->second);
    sending_.erase(found);
  }
}

void MessagePeer::deliver(const SharedOperation& receive, EarlyMessage message) {
  const Frame& frame = message.frame;
  if (frame.type == FrameType::kAsk) {
    --asks_;
    if (is_connected()) {
      begin_transfer(receive, frame);
      write();
    }
    return;  // else it ends with the reason why the peer is gone
  }
  kept_ -= cost_of(frame.bytes);
  give_credit(cost_of(frame.bytes));
  if (frame.bytes > receive->bytes) {
    refuse(/*id=*/0, frame, receive->bytes);
    return in_flight_.too_long(receive, rank_, frame.bytes);
  }
  if (frame.bytes > 0) copy_bytes(receive->buffer, message.data.get(), frame.bytes);
  in_flight_.received(receive, rank_, frame.bytes);
}

void MessagePeer::give_credit(std::size_t bytes) {
  owed_ += bytes;
  if (owed_ < kMostUntaken / 2 || !is_connected()) return;
  link_->send({.type = FrameType::kCredit, .bytes = std::exchange(owed_, 0)});
}

void MessagePeer::refuse(std::uint64_t id, const Frame& message, std::size_t room) {
  if (!is_connected()) return;
  link_->send({.type = FrameType::kRefused,
               .set = message.set,
               .tag = message.tag,
               .bytes = room,
               .id = id,
               .address = message.bytes});
}

void MessagePeer::begin_transfer(const SharedOperation& receive, const Frame& ask) {
  if (ask.bytes > receive->bytes) {
    refuse(ask.id, ask, receive->bytes);
    return in_flight_.too_long(receive, rank_, ask.bytes);
  }
  transfers_.emplace(ask.id, Transfer{receive, ask.bytes, ask.address});
  if (process_ != 0) {
    reads_.push_back(ask.id);
  } else {
    grant(ask.id);
  }
}

void MessagePeer::grant(std::uint64_t id) {
  link_->send({.type = FrameType::kGrant, .id = id});
}

void MessagePeer::withdraw(const SharedOperation& operation, const Status& why) {
  const std::uint64_t number = operation->number;
  std::erase(waiting_, operation);
  if (asked_.erase(number) != 0 && operation->is_send && is_connected())
    link_->send(text_frame(FrameType::kWithdrawn, number, why.message()), why.message().data());
  if (sending_.erase(operation.get()) != 0 && is_connected()) link_->take_back(operation.get());
  if (arriving_ == operation) {
    arriving_ = nullptr;
    link_->drop_incoming();
  }
  std::erase_if(transfers_, [&](const auto& each) { return each.second.receive == operation; });
  queue_.withdraw(operation);
}

void MessagePeer::say_goodbye(const Status& why) {
  if (!is_connected()) return;
  const std::uint64_t how = why.code() == Errc::kAborted ? 0 : kFailed;
  link_->send(text_frame(FrameType::kGoodbye, how, why.message()), why.message().data());
}

bool MessagePeer::move(bool can_receive, std::span<std::byte> scratch) {
  if (!is_connected()) return false;
  bool has_moved = false;
  const auto read = [&] {
    try {
      has_moved |= link_->read(*this, scratch);
    } catch (const Error&) {
      if (!has_said_goodbye_) throw;
    }
  };
  if (can_receive) read();
  if (read_memory()) {
    has_moved = true;
    // The peer closes its link, or withdraws its message, before it takes the message's memory back.
    if (!read_.empty()) read();
    finish_reads();
  }
  if (has_said_goodbye_) {
    lose(Status(gone_));
    return true;
  }
  write();
  return has_moved;
}

/// Reads a piece of the first message. True if there was one.
bool MessagePeer::read_memory() {
  while (!reads_.empty()) {
    const auto found = transfers_.find(reads_.front());
    if (found == transfers_.end()) {  // withdrawn
      reads_.pop_front();
      continue;
    }
    Transfer& transfer = found->second;
    const std::size_t bytes = std::min<std::uint64_t>(transfer.bytes - transfer.read, kMostAtOnce);
    try {
      read_process(rank_, process_, transfer.address + transfer.read, transfer.receive->buffer + transfer.read, bytes);
    } catch (const Error& error) {
      log::info("long messages of {} come over its connection: {}", in_flight_.name(rank_), error.what());
      process_ = 0;
      for (const std::uint64_t id : std::exchange(reads_, {})) {
        if (transfers_.contains(id)) grant(id);
      }
      return true;
    }
    transfer.read += bytes;
    if (transfer.read == transfer.bytes) {
      read_.push_back(found->first);
      reads_.pop_front();
    }
    return true;
  }
  return false;
}

void MessagePeer::finish_reads() {
  for (const std::uint64_t id : std::exchange(read_, {})) {
    const auto found = transfers_.find(id);
    if (found == transfers_.end()) continue;
    link_->send({.type = FrameType::kRead, .id = id});
    in_flight_.received(found->second.receive, rank_, found->second.bytes);
    transfers_.erase(found);
  }
}

std::optional<std::string> MessagePeer::look(Clock::time_point now) {
  return is_connected() ? find_silence(silence_, link_->socket(), now) : std::nullopt;
}

void MessagePeer::lose(const Status& why) {
  if (gone_.ok()) gone_ = why;
  link_.reset();
  if (early_ != nullptr) queue_.abandon(*std::exchange(early_, nullptr));
  waiting_.clear();
  asked_.clear();
  sending_.clear();
  transfers_.clear();
  reads_.clear();
  read_.clear();
  arriving_ = nullptr;
}

std::optional<Status> MessagePeer::take_complaint(std::int64_t set) {
  const auto found = complaints_.find(set);
  if (found == complaints_.end()) return std::nullopt;
  Status complaint = std::move(found->second);
  complaints_.erase(found);
  return complaint;
}

std::byte* MessagePeer::begin(const Frame& frame) {
  switch (frame.type) {
    case FrameType::kEager:
      return begin_eager(frame);
    case FrameType::kData: {
      const auto found = transfers_.find(frame.id);
      if (found == transfers_.end()) return nullptr;  // its receive has ended
      if (frame.bytes != found->second.bytes)
        refuse_frame(fmt::format("a message has {} bytes and not {}", frame.bytes, found->second.bytes));
      arriving_ = found->second.receive;
      return arriving_->buffer;
    }
    case FrameType::kWithdrawn:
    case FrameType::kGoodbye:
      text_.resize(frame.bytes);
      return reinterpret_cast<std::byte*>(text_.data());
    default:
      return nullptr;
  }
}

void MessagePeer::end(const Frame& frame) {
  switch (frame.type) {
    case FrameType::kToken:
      return take_token(frame);
    case FrameType::kEager:
      return end_eager(frame);
    case FrameType::kAsk:
      return take_ask(frame);
    case FrameType::kGrant:
      return take_grant(frame.id);
    case FrameType::kData:
      if (arriving_ != nullptr) in_flight_.received(std::exchange(arriving_, nullptr), rank_, frame.bytes);
      transfers_.erase(frame.id);
      return;
    case FrameType::kRead:
      if (const auto found = asked_.find(frame.id); found != asked_.end()) {
        in_flight_.sent(found->second);
        asked_.erase(found);
      }
      return;
    case FrameType::kRefused:
      return take_refusal(frame);
    case FrameType::kWithdrawn:
      return take_withdrawal(frame);
    case FrameType::kCredit:
      if (frame.bytes > untaken_) refuse_frame("it has taken more bytes than were sent to it");
      untaken_ -= frame.bytes;
      return;
    case FrameType::kGoodbye:
      has_said_goodbye_ = true;
      gone_ = Status(frame.id == kFailed ? Errc::kPeerLost : Errc::kAborted, text_);
      return;
  }
}

/// The receive that was posted first for a message.
/// Errors  Error(kProtocol): the peer is not in the message's set.
SharedOperation MessagePeer::match(const Frame& frame) {
  SharedOperation receive = queue_.take_receive(rank_, {frame.set, frame.tag});
  if (receive == nullptr) return nullptr;
  const std::vector<int>& ranks = *receive->ranks;
  if (std::find(ranks.begin(), ranks.end(), rank_) == ranks.end()) {
    in_flight_.failed(receive, Status(Errc::kProtocol, "a rank outside of the set has sent a message"));
    refuse_frame("it has sent a message in a process set that it is not in");
  }
  receive->peer = rank_;
  return receive;
}

std::byte* MessagePeer::begin_eager(const Frame& frame) {
  const std::size_t cost = cost_of(frame.bytes);
  if (SharedOperation receive = match(frame)) {
    give_credit(cost);
    if (frame.bytes > receive->bytes) {
      refuse(/*id=*/0, frame, receive->bytes);
      in_flight_.too_long(receive, rank_, frame.bytes);
      return nullptr;
    }
    arriving_ = std::move(receive);
    return arriving_->buffer;
  }
  if (kept_ + cost > kMostUntaken) refuse_frame("it has sent more messages than it may before they are received");
  kept_ += cost;
  EarlyMessage message{rank_, frame, std::make_unique_for_overwrite<std::byte[]>(frame.bytes), false};
  early_ = &queue_.keep({frame.set, frame.tag}, std::move(message));
  return early_->data.get();
}

void MessagePeer::end_eager(const Frame& frame) {
  if (arriving_ != nullptr) return in_flight_.received(std::exchange(arriving_, nullptr), rank_, frame.bytes);
  if (early_ == nullptr) return;  // its receive has ended
  if (std::optional<EarlyMessage> taken = queue_.completed(*std::exchange(early_, nullptr))) {
    const SharedOperation receive = taken->receive;
    deliver(receive, *std::move(taken));
  }
}

void MessagePeer::take_ask(const Frame& frame) {
  if (transfers_.contains(frame.id)) refuse_frame("it has given two messages one number");
  if (const SharedOperation receive = match(frame)) return begin_transfer(receive, frame);
  if (asks_ == kMostAsks) refuse_frame(fmt::format("it has sent {} messages that nobody receives", kMostAsks));
  ++asks_;
  queue_.keep({frame.set, frame.tag}, {rank_, frame, nullptr});
}

/// Only a real read shows what namespaces, Yama and seccomp filters allow, and that a process id means the same process
/// here.
void MessagePeer::take_token(const Frame& frame) {
  const auto process = static_cast<pid_t>(frame.id);
  if (!may_read_ || process <= 0) return;
  std::uint64_t value = 0;
  try {
    read_process(rank_, process, frame.address, &value, sizeof value);
    if (value == static_cast<std::uint64_t>(frame.tag)) process_ = process;
  } catch (const Error& error) {
    log::info("long messages of {} come over its connection: {}", in_flight_.name(rank_), error.what());
  }
}

void MessagePeer::take_grant(std::uint64_t id) {
  const auto found = asked_.find(id);
  if (found == asked_.end()) return;  // the send has ended
  const SharedOperation send = std::move(found->second);
  asked_.erase(found);
  sending_.emplace(send.get(), send);
  link_->send({.type = FrameType::kData, .bytes = send->bytes, .id = id}, send->buffer, send.get());
}

/// A send whose bytes have left has ended well. Another operation with this peer then ends with the error: one that is
/// in flight, or the next one.
void MessagePeer::take_refusal(const Frame& frame) {
  const Status why = in_flight_.refused_by(rank_, frame.tag, frame.address, frame.bytes);
  if (frame.id != 0) {
    const auto found = asked_.find(frame.id);
    if (found == asked_.end()) return;
    in_flight_.failed(found->second, why);
    asked_.erase(found);
    return;
  }
  const std::vector<SharedOperation> candidates =
      in_flight_.find([&](const MessageOperation& each) { return each.peer == rank_ && each.key.set == frame.set; });
  if (candidates.empty()) {
    if (complaints_.size() < kMostComplaints) complaints_.try_emplace(frame.set, why);
    return;
  }
  withdraw(candidates.front(), why);
  in_flight_.failed(candidates.front(), why);
}

void MessagePeer::take_withdrawal(const Frame& frame) {
  const auto found = transfers_.find(frame.id);
  if (found == transfers_.end()) {
    if (queue_.drop(rank_, frame.id)) --asks_;
    return;
  }
  in_flight_.failed(found->second.receive, Status(Errc::kAborted, text_));
  transfers_.erase(found);
}

}  // namespace runjob::runtime
