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
class ScriptedMembership {
 public:
  using TimePoint = Membership::TimePoint;

  ScriptedMembership(const std::string& host_list, ElasticSettings settings)
      : allocation(allocate(parse_host_list(host_list), std::nullopt)),
        membership(allocation, std::move(settings), std::chrono::seconds(30), actions()) {}

  /// The process waits for the next generation.
  void ready(int process, std::int64_t commit = 0, const std::string& reason = "", std::int64_t steps = -1) {
    membership.ready(process, {commit, reason, steps}, now);
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
  std::vector<int> hosts_left;
  std::vector<std::string> warnings;
  std::vector<std::string> finished;
  std::map<int, std::string> obstacles;  // by host: what keeps processes from starting there
  Membership membership;

 private:
  Membership::Actions actions() {
    Membership::Actions actions;
    actions.start = [this](const Membership::Start& start) { started.push_back(start); };
    actions.form = [this](const Membership::Generation& generation) { formed.push_back(generation); };
    actions.notify = [this](const rendezvous::Notice& notice) { notices.push_back(notice); };
    actions.end = [this](int process) { told_to_end.push_back(process); };
    actions.obstacle = [this](int host) { return obstacles.contains(host) ? obstacles.at(host) : ""; };
    actions.leave = [this](int host) { hosts_left.push_back(host); };
    actions.finish = [this](const std::string& why) { finished.push_back(why); };
    actions.warn = [this](const std::string& line) { warnings.push_back(line); };
    return actions;
  }
};

inline ElasticSettings elastic(int min_ranks, int max_ranks) {
  ElasticSettings settings;
  settings.min_ranks = min_ranks;
  settings.max_ranks = max_ranks;
  return settings;
}

}  // namespace runjob
