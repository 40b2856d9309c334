#include "rendezvous/server/kv_store.hpp"

#include <fmt/format.h>

namespace runjob::rendezvous {
namespace {

constexpr char kBytes[] = "application/octet-stream";

std::size_t cost(const KvStore::Name& name, std::size_t value_bytes) {
  return kEntryBytes + name.first.size() + name.second.size() + value_bytes;
}

Response not_there(const KvStore::Name& name) {
  return error_response(404, fmt::format("no key '{}' in scope '{}'", name.second, name.first));
}

Response full(const KvStore::Name& name) {
  return error_response(503, fmt::format("key '{}' in scope '{}': the rendezvous holds its limit of {} bytes",
                                         name.second, name.first, kMaxStoredBytes));
}

}  // namespace

Answers KvStore::get(const Name& name, TimePoint now, TimePoint deadline, Reply reply) {
  Answers answers;
  const auto value = values_.find(name);
  if (value != values_.end()) {
    answers.push_back({std::move(reply), {200, kBytes, value->second}});
  } else if (deadline <= now) {
    answers.push_back({std::move(reply), not_there(name)});
  } else if (!stored_.take(cost(name, 0))) {
    answers.push_back({std::move(reply), full(name)});
  } else {
    waiters_by_name_.emplace(name, waiters_.emplace(deadline, Waiter{name, std::move(reply)}));
  }
  return answers;
}

Answers KvStore::put(const Name& name, std::string value, Reply reply) {
  Answers answers;
  const auto before = values_.find(name);
  if (before != values_.end()) stored_.give_back(cost(name, before->second.size()));
  if (!stored_.take(cost(name, value.size()))) {
    if (before != values_.end()) static_cast<void>(stored_.take(cost(name, before->second.size())));
    answers.push_back({std::move(reply), full(name)});
    return answers;
  }
  const Body body = std::move(value);
  values_.insert_or_assign(name, body);
  const auto [first, last] = waiters_by_name_.equal_range(name);
  for (auto waiting = first; waiting != last; ++waiting) {
    stored_.give_back(cost(name, 0));
    answers.push_back({std::move(waiting->second->second.reply), {200, kBytes, body}});
    waiters_.erase(waiting->second);
  }
  waiters_by_name_.erase(first, last);
  answers.push_back({std::move(reply), {}});
  return answers;
}

Answers KvStore::remove(const Name& name, Reply reply) {
  const auto value = values_.find(name);
  if (value != values_.end()) {
    stored_.give_back(cost(name, value->second.size()));
    values_.erase(value);
  }
  Answers answers;
  answers.push_back({std::move(reply), {}});
  return answers;
}

Answers KvStore::expire(TimePoint now) {
  Answers answers;
  while (!waiters_.empty() && waiters_.begin()->first <= now) {
    const auto waiter = waiters_.begin();
    const Name name = waiter->second.name;
    auto entry = waiters_by_name_.lower_bound(name);
    while (entry->second != waiter) ++entry;
    waiters_by_name_.erase(entry);
    stored_.give_back(cost(name, 0));
    answers.push_back({std::move(waiter->second.reply), not_there(name)});
    waiters_.erase(waiter);
  }
  return answers;
}

Answers KvStore::close(const Response& response) {
  Answers answers;
  for (auto& [deadline, waiter] : waiters_) {
    stored_.give_back(cost(waiter.name, 0));
    answers.push_back({std::move(waiter.reply), response});
  }
  waiters_.clear();
  waiters_by_name_.clear();
  return answers;
}

KvStore::TimePoint KvStore::next_deadline() const {
  return waiters_.empty() ? TimePoint::max() : waiters_.begin()->first;
}

}  // namespace runjob::rendezvous
