#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hostfile/parse_hosts.hpp"
#include "launcher/elastic/membership.hpp"

namespace runjob {

/// A Membership whose actions are recorded.
class ScriptedMembership : private Membership::Actions {
 public:
  using TimePoint = Membership::TimePoint;

  ScriptedMembership(const std::string& host_list, ElasticSettings settings)
      : allocation(allocate(parse_host_list(host_list), std::nullopt)),
        membership(allocation, std::move(settings), std::chrono::seconds(30), *this) {}

  /// The process waits for the next generation.
  void ready(int process, std::int64_t commit = 0, const std::string& reason = "") {
    membership.ready(process, {membership.generation(), commit, reason}, now);
  }
  void killed(int process) { membership.exited(process, {false, "was killed by signal 9 (SIGKILL)"}, now); }
  void ended(int process) { membership.exited(process, {true, "exited with status 0"}, now); }
  void pass(std::chrono::steady_clock::duration time) {
    now += time;
    membership.expire(now);
  }
  /// The processes of the last generation by rank.
  std::vector<int> members() const {
    std::vector<int> result;
    if (formed.empty()) return result;
    for (const Membership::Member& each : formed.back().members) result.push_back(each.process);
    return result;
  }

  const Allocation allocation;
  TimePoint now{};
  std::vector<Membership::Generation> formed;
  std::vector<Membership::Start> started;
  std::vector<rendezvous::Notice> notices;
  std::vector<int> told_to_end;
  std::vector<std::string> warnings;
  std::vector<std::string> finished;
  Membership membership;

 private:
  void start(const Membership::Start& start) override { started.push_back(start); }
  void form(const Membership::Generation& generation) override { formed.push_back(generation); }
  void notify(const rendezvous::Notice& notice) override { notices.push_back(notice); }
  void end(int process) override { told_to_end.push_back(process); }
  void finish(const std::string& why) override { finished.push_back(why); }
  void warn(const std::string& line) override { warnings.push_back(line); }
};

inline ElasticSettings elastic(int min_ranks, int max_ranks) {
  ElasticSettings settings;
  settings.min_ranks = min_ranks;
  settings.max_ranks = max_ranks;
  return settings;
}

}  // namespace runjob
