#include "runtime/engine/control_plane.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

short events_on(std::span<const pollfd> descriptors, int fd) {
  const auto found = std::find_if(descriptors.begin(), descriptors.end(), [&](const pollfd& p) { return p.fd == fd; });
  return found == descriptors.end() ? short{0} : found->revents;
}

/// `from`: of one message.
void append(std::vector<Decision>& to, std::vector<Decision> from) {
  if (!from.empty()) from.back().ends_message = true;
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

Coordinator::Coordinator(Members members, std::vector<ControlChannel> channels,
                         std::unique_ptr<NegotiationObserver> observer)
    : negotiation_(std::move(members)), channels_(std::move(channels)), observer_(std::move(observer)) {
  for (std::size_t rank = 1; rank < channels_.size(); ++rank) read(static_cast<int>(rank));
  distribute();
}

void Coordinator::send(const RankMessage& message) {
  receive(0, message);
  distribute();
}

void Coordinator::watch(std::vector<pollfd>& descriptors) const {
  for (const ControlChannel& channel : channels_) {
    if (channel.is_open()) descriptors.push_back({channel.fd(), channel.poll_events(), 0});
  }
}

void Coordinator::on_events(std::span<const pollfd> descriptors, Clock::time_point now) {
  for (std::size_t rank = 1; rank < channels_.size(); ++rank) {
    ControlChannel& channel = channels_[rank];
    if (!channel.is_open()) continue;
    const short events = events_on(descriptors, channel.fd());
    if ((events & POLLOUT) != 0) channel.flush();
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read(static_cast<int>(rank));
  }
  if (!negotiation_.is_suspicious()) {
    verdict_due_.reset();
  } else if (!verdict_due_) {
    verdict_due_ = now + kVerdictGrace;
  } else if (now >= *verdict_due_) {
    negotiation_.give_up();
    verdict_due_.reset();
  }
  distribute();
}

std::vector<Decision> Coordinator::take() {
  return std::exchange(decisions_, {});
}

void Coordinator::receive(int rank, const RankMessage& message) {
  if (message.type == RankMessage::Type::kClock) return tell_clock(rank, message.asked);
  if (message.type == RankMessage::Type::kTrace) {
    if (observer_ != nullptr) observer_->take_records(message.trace);
    return;
  }
  if (observer_ != nullptr && message.type == RankMessage::Type::kSubmit) {
    for (const Request& request : message.requests) observer_->rank_ready(request.name, request.signature.kind, rank);
  }
  negotiation_.receive(rank, message);
}

void Coordinator::tell_clock(int rank, std::int64_t asked) {
  Decision answer;
  answer.type = Decision::Type::kClock;
  answer.first_extents = {asked, observer_ == nullptr ? -1 : observer_->clock()};
  channels_[static_cast<std::size_t>(rank)].send(encode(std::vector{std::move(answer)}));
}

void Coordinator::read(int rank) {
  ControlChannel& channel = channels_[static_cast<std::size_t>(rank)];
  channel.receive();
  try {
    while (const auto frame = channel.next_frame()) receive(rank, decode_rank_message(*frame));
  } catch (const Error&) {  // nothing after it can be understood either
    channel.close();
  }
  if (!channel.is_open()) negotiation_.lost(rank);
}

void Coordinator::distribute() {
  std::vector<Decision> decisions = negotiation_.take();
  if (decisions.empty()) return;
  const std::string frame = encode(decisions);
  for (ControlChannel& channel : channels_) {
    if (!channel.is_open()) continue;
    channel.send(frame);
    count_sent();
  }
  append(decisions_, std::move(decisions));
}

Member::Member(ControlChannel channel, std::string coordinator)
    : channel_(std::move(channel)), coordinator_(std::move(coordinator)) {}

void Member::send(const RankMessage& message) {
  if (!channel_.is_open()) return;
  channel_.send(encode(message));
  count_sent();
}

void Member::watch(std::vector<pollfd>& descriptors) const {
  if (channel_.is_open()) descriptors.push_back({channel_.fd(), channel_.poll_events(), 0});
}

void Member::on_events(std::span<const pollfd> descriptors, Clock::time_point) {
  if (!channel_.is_open()) return;
  const short events = events_on(descriptors, channel_.fd());
  if ((events & POLLOUT) != 0) channel_.flush();
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) channel_.receive();
  try {
    while (const auto frame = channel_.next_frame()) append(decisions_, decode_decisions(*frame));
  } catch (const Error&) {
    channel_.close();
  }
  for (const Decision& decision : decisions_) {
    over_ = over_ || decision.type == Decision::Type::kAbort || decision.type == Decision::Type::kReleased;
    leaving_ = leaving_ || decision.type == Decision::Type::kLeaving;
  }
  if (!channel_.is_open() && !over_) coordinator_lost();
}

std::vector<Decision> Member::take() {
  return std::exchange(decisions_, {});
}

void Member::coordinator_lost() {
  over_ = true;
  Decision decision;
  decision.type = Decision::Type::kReleased;
  if (leaving_) return decisions_.push_back(std::move(decision));  // it did not wait for us any longer
  decision.type = Decision::Type::kAbort;
  decision.status =
      Status(Errc::kPeerLost,
             fmt::format("{} is gone: it ended or lost its connection without calling shutdown()", coordinator_));
  decisions_.push_back(std::move(decision));
}

}  // namespace runjob::runtime
