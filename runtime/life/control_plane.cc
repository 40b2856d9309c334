#include "runtime/life/control_plane.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

short events_on(std::span<const pollfd> descriptors, int fd) {
  const auto found = std::find_if(descriptors.begin(), descriptors.end(), [&](const pollfd& p) { return p.fd == fd; });
  return found == descriptors.end() ? short{0} : found->revents;
}

}  // namespace

Coordinator::Coordinator(Members members, std::vector<ControlChannel> channels, std::unique_ptr<TraceReceiver> trace)
    : members_(std::move(members)), life_(members_), channels_(std::move(channels)), trace_(std::move(trace)) {
  for (std::size_t rank = 1; rank < channels_.size(); ++rank) read(static_cast<int>(rank));
  distribute();
}

void Coordinator::send(const LifeReport& report) {
  receive(0, report);
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
  if (!life_.is_suspicious()) {
    verdict_due_.reset();
  } else if (!verdict_due_) {
    verdict_due_ = now + kVerdictGrace;
  } else if (now >= *verdict_due_) {
    life_.give_up();
    verdict_due_.reset();
  }
  distribute();
}

std::vector<LifeDecision> Coordinator::take() {
  return std::exchange(decisions_, {});
}

bool Coordinator::has_unacknowledged() const {
  return std::any_of(channels_.begin(), channels_.end(),
                     [](const ControlChannel& channel) { return channel.has_unacknowledged(); });
}

void Coordinator::receive(int rank, const LifeReport& report) {
  if (report.type == LifeReport::Type::kClock) return answer_clock(rank, report.asked);
  if (report.type == LifeReport::Type::kTrace && trace_ != nullptr)
    trace_->take_records(rank_text(rank, members_), report.trace);
  life_.receive(rank, report);
}

void Coordinator::answer_clock(int rank, std::int64_t asked) {
  LifeDecision answer;
  answer.type = LifeDecision::Type::kClock;
  answer.asked = asked;
  if (trace_ != nullptr) answer.clock = trace_->clock();
  channels_[static_cast<std::size_t>(rank)].send(encode(answer));
}

void Coordinator::read(int rank) {
  ControlChannel& channel = channels_[static_cast<std::size_t>(rank)];
  channel.receive();
  try {
    while (const auto frame = channel.next_frame()) receive(rank, decode_life_report(*frame));
  } catch (const Error&) {  // the bytes after it cannot be understood either
    channel.close();
  }
  if (!channel.is_open()) life_.lost(rank, channel.error());
}

void Coordinator::distribute() {
  for (LifeDecision& decision : life_.take()) {
    const std::string frame = encode(decision);
    for (ControlChannel& channel : channels_) {
      if (!channel.is_open()) continue;
      channel.send(frame);
      count_sent();
    }
    decisions_.push_back(std::move(decision));
  }
}

Member::Member(ControlChannel channel, std::string coordinator)
    : channel_(std::move(channel)), coordinator_(std::move(coordinator)) {}

void Member::send(const LifeReport& report) {
  using Type = LifeReport::Type;
  if (!channel_.is_open()) return;
  const bool fails = report.type == Type::kFailed || report.type == Type::kSetFailed || report.type == Type::kStalled ||
                     (report.type == Type::kGiveUp && report.process_set == 0);
  if (failure_.ok() && fails) {
    failure_ = report.status;
    late_ = report.late;
  }
  channel_.send(encode(report));
  count_sent();
}

void Member::watch(std::vector<pollfd>& descriptors) const {
  if (channel_.is_open()) descriptors.push_back({channel_.fd(), channel_.poll_events(), 0});
}

void Member::on_events(std::span<const pollfd> descriptors, Clock::time_point now) {
  if (!channel_.is_open()) return;
  const short events = events_on(descriptors, channel_.fd());
  if ((events & POLLOUT) != 0) channel_.flush();
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) channel_.receive();
  try {
    while (const auto frame = channel_.next_frame()) note(decode_life_decision(*frame));
  } catch (const Error&) {
    channel_.close();
  }
  if (!is_over_ && !failure_.ok()) decide_alone(now);
  if (!channel_.is_open() && !is_over_) coordinator_lost();
  if (is_over_) decision_due_.reset();
}

/// Decides for this rank's failure when the coordinator has not done so in time.
void Member::decide_alone(Clock::time_point now) {
  if (!decision_due_) decision_due_ = now + kDecisionLimit;
  if (now < *decision_due_) return;
  note({.type = LifeDecision::Type::kAbort,
        .status = Status(failure_.code(), fmt::format("{}; {} does not answer", failure_.message(), coordinator_)),
        .late = late_});
  channel_.close();
}

std::vector<LifeDecision> Member::take() {
  return std::exchange(decisions_, {});
}

void Member::note(LifeDecision decision) {
  using Type = LifeDecision::Type;
  is_over_ = is_over_ || decision.type == Type::kAbort || decision.type == Type::kReleased;
  is_leaving_ = is_leaving_ || decision.type == Type::kLeaving;
  decisions_.push_back(std::move(decision));
}

/// While ranks are leaving, the coordinator may go without waiting for this one any longer: that is a release.
void Member::coordinator_lost() {
  is_over_ = true;
  if (is_leaving_) return decisions_.push_back({.type = LifeDecision::Type::kReleased});
  decisions_.push_back(
      {.type = LifeDecision::Type::kAbort,
       .status =
           Status(Errc::kPeerLost,
                  fmt::format("{} is gone: it ended or lost its connection without calling shutdown()", coordinator_)),
       .lost = channel_.error() == 0 ? -1 : 0});
}

}  // namespace runjob::runtime
