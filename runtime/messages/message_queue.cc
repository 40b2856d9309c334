#include "runtime/messages/message_queue.hpp"

#include <algorithm>

namespace runjob::runtime {
namespace {

MessageKey key_of(const Frame& frame) {
  return {frame.set, frame.tag};
}

std::size_t kept_bytes(const EarlyMessage& message) {
  return message.frame.type == FrameType::kEager ? sizeof(Frame) + message.frame.bytes : 0;
}

}  // namespace

SharedOperation MessageQueue::take_receive(int peer, const MessageKey& key) {
  const auto found = posted_.find(key);
  if (found == posted_.end()) return nullptr;
  std::list<SharedOperation>& receives = found->second;
  const auto first = std::find_if(receives.begin(), receives.end(),
                                  [peer](const SharedOperation& each) { return each->takes_from(peer); });
  if (first == receives.end()) return nullptr;
  SharedOperation receive = std::move(*first);
  receives.erase(first);
  if (receives.empty()) posted_.erase(found);
  return receive;
}

EarlyMessage& MessageQueue::keep(const MessageKey& key, EarlyMessage message) {
  return early_[key].emplace_back(std::move(message));
}

std::optional<EarlyMessage> MessageQueue::take_message(const SharedOperation& receive, bool& is_found) {
  const auto found = early_.find(receive->key);
  is_found = false;
  if (found != early_.end()) {
    Messages& messages = found->second;
    const auto first = std::find_if(messages.begin(), messages.end(), [&](const EarlyMessage& each) {
      return receive->takes_from(each.peer) && each.receive == nullptr;
    });
    is_found = first != messages.end();
    if (is_found) receive->peer = first->peer;
    if (is_found && !first->is_complete) {
      first->receive = receive;
      return std::nullopt;
    }
    if (is_found) {
      EarlyMessage message = std::move(*first);
      messages.erase(first);
      if (messages.empty()) early_.erase(found);
      return message;
    }
  }
  posted_[receive->key].push_back(receive);
  return std::nullopt;
}

std::optional<EarlyMessage> MessageQueue::completed(EarlyMessage& message) {
  message.is_complete = true;
  if (message.receive == nullptr) return std::nullopt;
  return remove(message);
}

void MessageQueue::abandon(EarlyMessage& message) {
  remove(message);
}

EarlyMessage MessageQueue::remove(const EarlyMessage& message) {
  const auto found = early_.find(key_of(message.frame));
  const auto place = std::find_if(found->second.begin(), found->second.end(),
                                  [&](const EarlyMessage& each) { return &each == &message; });
  EarlyMessage taken = std::move(*place);
  found->second.erase(place);
  if (found->second.empty()) early_.erase(found);
  return taken;
}

void MessageQueue::withdraw(const SharedOperation& receive) {
  if (const auto found = posted_.find(receive->key); found != posted_.end()) {
    found->second.remove(receive);
    if (found->second.empty()) posted_.erase(found);
  }
  if (const auto found = early_.find(receive->key); found != early_.end()) {
    for (EarlyMessage& each : found->second) {
      if (each.receive == receive) each.receive = nullptr;
    }
  }
}

bool MessageQueue::drop(int peer, std::uint64_t id) {
  for (auto entry = early_.begin(); entry != early_.end(); ++entry) {
    Messages& messages = entry->second;
    const auto found = std::find_if(messages.begin(), messages.end(), [&](const EarlyMessage& each) {
      return each.peer == peer && each.frame.type == FrameType::kAsk && each.frame.id == id;
    });
    if (found == messages.end()) continue;
    messages.erase(found);
    if (messages.empty()) early_.erase(entry);
    return true;
  }
  return false;
}

std::map<int, std::size_t> MessageQueue::drop_set(std::int64_t set) {
  std::map<int, std::size_t> dropped;
  for (auto entry = early_.begin(); entry != early_.end();) {
    if (entry->first.set == set) {
      std::erase_if(entry->second, [&](const EarlyMessage& each) {
        if (!each.is_complete) return false;
        dropped[each.peer] += kept_bytes(each);
        return true;
      });
    }
    entry = entry->second.empty() ? early_.erase(entry) : std::next(entry);
  }
  return dropped;
}

std::size_t MessageQueue::kept() const {
  std::size_t count = 0;
  for (const auto& [key, messages] : early_) count += messages.size();
  return count;
}

}  // namespace runjob::runtime
