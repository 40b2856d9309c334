#include <algorithm>
#include <random>

#include "tests/catch.hpp"
#include "tests/launcher/elastic/scripted_membership.hpp"

using namespace runjob;
using namespace std::chrono_literals;

// Random schedules of losses, growth and time, over the state machine alone: processes do what real ones would do, in
// any order. Whatever happens, the job goes on or ends.

namespace {

/// The processes of a job, and what each of them does next.
class Simulation {
 public:
  explicit Simulation(unsigned seed) : random_(seed), job_("s1:3,s2:3,s3:2", settings(seed)) {
    job_.membership.begin(job_.now);
    for (const Placement& each : job_.allocation.placements) alive_[each.rank] = {0, true};
  }

  void run(int events) {
    for (int i = 0; i < events && job_.finished.empty(); ++i) step();
    // Nothing more goes wrong: everybody comes back, and training ends.
    for (int i = 0; i < 1000 && job_.finished.empty(); ++i) {
      take_up_actions();
      const std::map<int, Process> before = alive_;
      for (const auto& [process, state] : before) {
        if (!state.ready && needs_to_meet(process)) meet(process);
      }
      take_up_actions();
      const bool all_train = std::all_of(alive_.begin(), alive_.end(), [this](const auto& each) {
        return !needs_to_meet(each.first) || each.second.ready;
      });
      if (all_train) {
        const std::vector<int> members = current_members();
        if (members.empty()) {
          job_.pass(100s);
          continue;
        }
        for (const int process : members) end_well(process);
      }
    }
    REQUIRE_FALSE(job_.finished.empty());
  }

 private:
  struct Process {
    std::int64_t commit = 0;
    bool initial = false;
    bool ready = false;
  };

  static ElasticSettings settings(unsigned seed) {
    ElasticSettings result = elastic(2, 7);
    result.spares = static_cast<int>(seed % 3);
    result.as_horovod = seed % 5 == 0;
    result.more_hosts = parse_host_list("s4:2");
    result.timeout = 50s;
    result.rank_restarts = 5;
    result.cooldown = Cooldown{10s, 40s};
    return result;
  }

  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }

  int any_process() {
    auto found = alive_.begin();
    std::advance(found, pick(static_cast<int>(alive_.size())));
    return found->first;
  }

  std::vector<int> current_members() const {
    std::vector<int> result;
    for (const auto& [process, state] : alive_) {
      if (job_.membership.roll().rank_of(process) >= 0) result.push_back(process);
    }
    return result;
  }

  bool needs_to_meet(int process) const {
    const int rank = job_.membership.roll().rank_of(process);
    if (rank < 0 || job_.notices.empty()) return rank < 0;
    const rendezvous::Notice& notice = job_.notices.back();
    const int generation = job_.membership.generation();
    return notice.ended >= generation || notice.outdated >= generation;
  }

  void meet(int process) {
    Process& state = alive_.at(process);
    const auto& leaving = job_.notices.empty() ? std::vector<int>() : job_.notices.back().leaving;
    if (std::count(leaving.begin(), leaving.end(), process) != 0) return end_well(process);
    state.ready = true;
    job_.ready(process, state.commit);
  }

  void end_well(int process) {
    alive_.erase(process);
    job_.ended(process);
  }

  void step() {
    take_up_actions();
    if (alive_.empty()) return job_.pass(10s);
    const int process = any_process();
    switch (pick(12)) {
      case 0:
        alive_.erase(process);
        return job_.killed(process);
      case 1:
        return job_.membership.entered(process, job_.now);
      case 2:
        if (job_.membership.roll().rank_of(process) >= 0 && !alive_.at(process).ready)
          meet(process);  // an error of its own
        return;
      case 3:
        return job_.pass(std::chrono::seconds(pick(40)));
      case 4:
        if (pick(8) == 0) lose_host(pick(3));
        return;
      case 5:
        if (pick(8) == 0) set_host(pick(5), pick(2));  // it leaves, or loses slots
        return;
      case 6:
        if (pick(4) == 0) set_host(pick(5), 1 + pick(3));
        if (pick(8) == 0) job_.membership.resize(most_ = 2 + pick(8), job_.now);
        return;
      case 7:
        for (const int member : current_members()) ++alive_.at(member).commit;
        return;
      default:
        if (!alive_.at(process).ready && needs_to_meet(process)) meet(process);
    }
  }

  /// Hosts join, come back, leave, and change their slots.
  void set_host(int host, int slots) {
    if (!job_.membership.roll().hosts.contains(host) && slots == 0) return;
    job_.membership.set_host(host, "host", slots, job_.now, pick(2) == 0);
  }

  void lose_host(int host) {
    std::erase_if(alive_, [&](const auto& each) { return job_.membership.roll().host_of(each.first) == host; });
    job_.membership.host_lost(host, "lost its agent", job_.now);
  }

  /// What the launcher would have done since.
  void take_up_actions() {
    for (; seen_starts_ < job_.started.size(); ++seen_starts_) alive_[job_.started[seen_starts_].process] = {-1, false};
    for (; seen_ends_ < job_.told_to_end.size(); ++seen_ends_) {
      const int process = job_.told_to_end[seen_ends_];
      if (alive_.erase(process) != 0) job_.killed(process);
    }
    for (; seen_generations_ < job_.formed.size(); ++seen_generations_) check(job_.formed[seen_generations_]);
    most_when_formed_ = most_;
  }

  void check(const Membership::Generation& generation) {
    CHECK(generation.number == static_cast<int>(seen_generations_) + 1);
    CHECK(std::ssize(generation.members) >= 2);
    CHECK(std::ssize(generation.members) <= most_when_formed_);
    std::set<std::pair<int, int>> places;
    std::int64_t newest = -1;
    for (const Membership::Member& member : generation.members) {
      CHECK(places.insert({member.host, member.local_rank}).second);
      newest = std::max(newest, member.commit);
      const auto found = alive_.find(member.process);
      if (found == alive_.end()) continue;
      found->second.ready = false;
      found->second.commit = std::max(newest, found->second.commit);  // it receives rank 0's state
    }
    CHECK(generation.members.front().commit == newest);
  }

  std::mt19937 random_;
  ScriptedMembership job_;
  std::map<int, Process> alive_;
  int most_ = 8, most_when_formed_ = 8;  // ranks; the first generation has 8
  std::size_t seen_starts_ = 0, seen_ends_ = 0, seen_generations_ = 0;
};

}  // namespace

TEST_CASE("in 1,000 random schedules the job goes on or ends, and no place is given twice", "[unit]") {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    Simulation(seed).run(120);
  }
}
