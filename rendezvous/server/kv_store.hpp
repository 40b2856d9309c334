#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "rendezvous/server/answers.hpp"

namespace runjob::rendezvous {

/// Values by scope and key, with callers that wait for one to appear.
/// Owner    the Service, which outlives it with `stored`.
class KvStore {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Name = std::pair<std::string, std::string>;  // scope, key

  explicit KvStore(StoredBytes& stored) : stored_(stored) {}

  /// Waits until `deadline` for a value that is not there.
  Answers get(const Name& name, TimePoint now, TimePoint deadline, Reply reply);
  Answers put(const Name& name, std::string value, Reply reply);
  Answers remove(const Name& name, Reply reply);

  Answers expire(TimePoint now);
  Answers close(const Response& response);
  TimePoint next_deadline() const;

  std::size_t size() const { return values_.size(); }
  std::size_t waiting() const { return waiters_.size(); }

 private:
  struct Waiter {
    Name name;
    Reply reply;
  };
  using Waiters = std::multimap<TimePoint, Waiter>;  // by deadline

  StoredBytes& stored_;
  std::map<Name, Body> values_;
  Waiters waiters_;
  std::multimap<Name, Waiters::iterator> waiters_by_name_;
};

}  // namespace runjob::rendezvous
