#include "runtime/messages/messages_in_flight.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace runjob::runtime {

void MessagesInFlight::finish(const SharedOperation& operation, Status status, Completion::Result result) {
  if (operations_.erase(operation->number) == 0) return;  // it has ended before
  finished_.push_back({std::move(operation->completion), std::move(status), std::move(result)});
}

void MessagesInFlight::received(const SharedOperation& receive, int from, std::size_t bytes) {
  const std::vector<int>& ranks = *receive->ranks;
  const auto place = std::find(ranks.begin(), ranks.end(), from);
  Completion::Result result;
  result.source = {static_cast<int>(place - ranks.begin()), static_cast<std::int64_t>(bytes)};
  finish(receive, {}, std::move(result));
}

void MessagesInFlight::too_long(const SharedOperation& receive, int from, std::size_t bytes) {
  finish(receive,
         Status(Errc::kMismatch, fmt::format("{}: the message of {} has {} bytes, and the receive has room for {}",
                                             text(*receive), name(from), bytes, receive->bytes)),
         {});
}

Status MessagesInFlight::refused_by(int to, std::int64_t tag, std::size_t bytes, std::size_t room) const {
  return Status(Errc::kMismatch, fmt::format("the message with tag {} to {} has {} bytes, and its receive has room "
                                             "for {}",
                                             tag, name(to), bytes, room));
}

std::string MessagesInFlight::text(const MessageOperation& operation) const {
  const std::string peer = operation.peer == MessageOperation::kAnyPeer ? "any rank" : name(operation.peer);
  const auto set = static_cast<std::uint32_t>(operation.key.set);
  return fmt::format("{} with tag {} {} {}{}", operation.is_send ? "send" : "receive", operation.key.tag,
                     operation.is_send ? "to" : "from", peer, set == 0 ? "" : fmt::format(", process set {}", set));
}

Status MessagesInFlight::described(const MessageOperation& operation, const Status& why) const {
  return Status(why.code(), fmt::format("{}: {}", text(operation), why.message()));
}

}  // namespace runjob::runtime
