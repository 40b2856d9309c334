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
    int rank = -1;  ///< -1: no member
    bool entered = false;
    bool ready = false;
    bool leaving = false;  ///< at its next commit
    bool ending = false;   ///< the launcher has sent it the signal to end
    std::int64_t commit = -1;

    bool stays() const { return !leaving && !ending; }
    /// The other members wait for it: the generation has ended, and it has not come back yet.
    bool is_awaited() const { return rank >= 0 && !ready && stays(); }
  };
  struct HostState {
    std::string name;
    int slots = 0;
    bool usable = true;
  };

  /// The process's rank in the present generation; -1 for none.
  int rank_of(int process) const;
  /// The index of the process's host; -1 for an unknown process.
  int host_of(int process) const;
  /// "rank 5 on s2", or "a new process on s2".
  std::string name_of(int process) const;

  int free_local_rank(int host) const;
  /// How many processes there are on a host: those that are about to end still have their place.
  int count_on(int host) const;
  /// How many processes there are that stay.
  int staying() const;
  /// How many processes have a rank.
  int ranks() const;
  /// The processes that are ready, by their rank in the next generation: the first member that has the newest commit,
  /// the other members in their order, then newcomers.
  std::vector<int> ready_in_order() const;

  std::map<int, HostState> hosts;    ///< by index
  std::map<int, Process> processes;  ///< by number
};

}  // namespace runjob
