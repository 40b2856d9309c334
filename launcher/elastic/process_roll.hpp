#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace runjob {

/// The hosts and the living processes of an elastic job. Pure.
/// Threads  one.
struct ProcessRoll {
  struct Process {
    int host = 0;
    int local_rank = 0;
    int rank = -1;         ///< -1: no member
    int absent_rank = -1;  ///< of the generation that has ended last, in which it had not entered; -1: none
    bool entered = false;
    bool ready = false;
    bool leaving = false;  ///< at its next commit
    bool ending = false;   ///< the launcher has sent it the signal to end
    std::int64_t commit = -1;
    std::int64_t member_since = 0;  ///< the newest commit when it became a member
    std::int64_t steps = -1;        ///< that it has begun since this commit; less than 0: unknown

    /// It is a member, or was one when the present generation ended. That it has entered becomes known a little later,
    /// so a member may have failed before that.
    bool was_member() const { return rank >= 0 || absent_rank >= 0; }
    bool stays() const { return !leaving && !ending; }
    /// It is on its way to elastic.run(), or waits there for a place.
    bool is_newcomer() const { return rank < 0 && stays(); }
    /// The other members wait for it: the generation has ended, and it has not come back yet.
    bool is_awaited() const { return rank >= 0 && !ready && stays(); }
  };
  struct HostState {
    std::string name;
    int slots = 0;
    bool usable = true;
    bool is_obstacle_known = false;  ///< the user knows what keeps processes from starting here
  };

  struct HostNumber {
    int number = 0;
    int hosts = 1;  ///< how many are counted
  };

  /// The process's rank in the present generation; -1 for none.
  int rank_of(int process) const;
  /// Process::was_member(); false for an unknown process.
  bool was_member(int process) const;
  /// The index of the process's host; -1 for an unknown process.
  int host_of(int process) const;
  /// "rank 5 on s2", or "a new process on s2".
  std::string name_of(int process) const;

  int free_local_rank(int host) const;
  /// How many processes there are on a host: those that are about to end still have their place.
  int count_on(int host) const;
  /// How many processes there are that stay.
  int staying() const;
  /// How many of them are on a host.
  int staying_on(int host) const;
  /// Some process on this host has a rank, and stays.
  bool has_member_on(int host) const;
  /// The number of a host among those that have processes which stay.
  HostNumber number_of_host(int host) const;
  /// How many processes have a rank.
  int ranks() const;
  /// How many newcomers are ready.
  int ready_newcomers() const;
  /// Some newcomer is not ready yet.
  bool any_on_its_way() const;
  /// The numbers of the processes of a host that stay and for which it has no slot any more, the last ones first.
  std::vector<int> surplus_on(int host) const;
  /// The numbers of the processes that stay and are more than `ranks` with `spares` others: the last ranks, then the
  /// last newcomers.
  std::vector<int> surplus(int ranks, int spares) const;
  /// A member that has not entered elastic.run() yet, as far as is known, need not be waited for.
  void make_newcomers_of_absent_members();
  /// The steps that are done again from commit `newest`: the largest number of the members that bring it; less than 0
  /// when none of them knows it.
  std::int64_t steps_since(std::int64_t newest) const;
  /// The processes that are ready, by their rank in the next generation: the first member that has the newest commit,
  /// the other members in their order, then newcomers.
  std::vector<int> ready_in_order() const;

  std::map<int, HostState> hosts;    ///< by index
  std::map<int, Process> processes;  ///< by number
};

}  // namespace runjob
