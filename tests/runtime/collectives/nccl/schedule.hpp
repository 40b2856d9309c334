#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/runtime/rank_processes.hpp"

/// A random course of a job whose ranks use GPUs. It is made from a seed alone, so that all ranks have the same one.
namespace runjob::runtime {

/// An operation of all members of a set. Its elements, the values of each rank and the result follow from this.
struct PlannedOperation {
  std::string name;
  runjob_kind kind = RUNJOB_ALLREDUCE;
  runjob_reduce_op op = RUNJOB_SUM;
  double postscale = 1;  ///< another one makes the operation go through the host
  int set = -1;          ///< index of a set of the schedule; -1 for the job
  int root = 0;          ///< index among the members
  int count = 1;         ///< elements; of each member's part, where there are parts
  int salt = 0;          ///< makes the values differ
  bool is_on_host = false;
};

struct ScheduleStep {
  enum class Type {
    kBatch,          ///< `operations` are in flight together; each rank submits and ends them in an order of its own
    kAddSet,         ///< of `members`
    kRemoveSet,      ///< `set`
    kRemoveBusySet,  ///< `set`, while `operations` of it are in flight
    kJoin,           ///< rank r has `extras[r]` more allreduces before it joins
  };
  Type type = Type::kBatch;
  std::vector<PlannedOperation> operations = {};
  std::vector<std::int32_t> members = {};
  int set = -1;
  std::vector<int> extras = {};
};

/// The fault of a job, in one rank.
struct ScheduleFault {
  enum class Type { kNone, kFail, kHang, kKill, kLeave };
  Type type = Type::kNone;
  int rank = 0;
  int step = 0;      ///< kKill, kLeave: in its midst
  std::string call;  ///< kFail, kHang: as the stand-ins' variables take it
};

struct Schedule {
  unsigned seed = 0;
  int size = 2;
  Environment environment;
  std::vector<std::vector<std::int32_t>> sets;  ///< all that are ever added
  std::vector<ScheduleStep> steps;
  ScheduleFault fault;

  explicit Schedule(unsigned of);
  const std::vector<std::int32_t>& members_of(int set) const;

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  void choose_environment();
  void choose_fault();
  PlannedOperation operation(int number, int set);
  std::vector<PlannedOperation> operations(const std::vector<int>& alive);
  void add_step(std::vector<int>& alive);
  bool add_set(std::vector<int>& alive);

  std::mt19937 random_;
  std::vector<std::int32_t> everyone_;
  std::vector<PlannedOperation> last_;  ///< of the last batch, which the next one may repeat
  bool has_sets_ = false;
};

}  // namespace runjob::runtime
