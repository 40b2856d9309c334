#include "tests/runtime/collectives/nccl/schedule.hpp"

#include <algorithm>

namespace runjob::runtime {
namespace {

constexpr int kSteps = 12, kMostOperations = 6, kMostSets = 3;

template <class T, std::size_t size>
const T& one_of(const T (&list)[size], unsigned number) {
  return list[number % size];
}

}  // namespace

/// Half of the seeds have no fault; each of the others has one of the four.
Schedule::Schedule(unsigned of) : seed(of), random_(of) {
  size = 2 + below(3);
  for (int rank = 0; rank < size; ++rank) everyone_.push_back(rank);
  has_sets_ = below(2) == 0;
  choose_environment();
  choose_fault();
  std::vector<int> alive;
  for (int step = 0; step < kSteps; ++step) add_step(alive);
}

const std::vector<std::int32_t>& Schedule::members_of(int set) const {
  return set < 0 ? everyone_ : sets[static_cast<std::size_t>(set)];
}

void Schedule::choose_environment() {
  constexpr const char* kDelays[] = {"0", "100", "500"};
  constexpr const char* kRoom[] = {"1", "2", "64"};
  constexpr const char* kThresholds[] = {"0", "64", "1MB"};
  constexpr const char* kCycles[] = {"0", "0", "1"};
  environment["RUNJOB_STAND_IN_DELAY_US"] = one_of(kDelays, random_());
  environment["RUNJOB_STAND_IN_KERNELS"] = one_of(kRoom, random_());
  environment["RUNJOB_FUSION_THRESHOLD"] = one_of(kThresholds, random_());
  environment["RUNJOB_CYCLE_TIME"] = one_of(kCycles, random_());
  if (has_sets_) environment["RUNJOB_DYNAMIC_PROCESS_SETS"] = "1";
}

void Schedule::choose_fault() {
  using Type = ScheduleFault::Type;
  constexpr Type kTypes[] = {Type::kNone, Type::kNone, Type::kNone, Type::kNone,
                             Type::kFail, Type::kHang, Type::kKill, Type::kLeave};
  constexpr const char* kFailing[] = {"kernel",      "ncclAllReduce", "ncclGroupEnd",    "event_record",
                                      "event_query", "stream_wait",   "memory_allocate", "ncclCommInitRank"};
  constexpr const char* kHanging[] = {"kernel", "ncclAllReduce"};
  fault.type = one_of(kTypes, seed);
  fault.rank = below(size);
  fault.step = below(kSteps);
  const std::string number = std::to_string(1 + below(15));
  if (fault.type == Type::kFail) fault.call = std::string(one_of(kFailing, random_())) + ":" + number;
  if (fault.type != Type::kHang) return;
  fault.call = std::string(one_of(kHanging, random_())) + ":" + number;
  environment["RUNJOB_STALL_CHECK_TIME_SECONDS"] = "0";
  environment["RUNJOB_STALL_SHUTDOWN_TIME_SECONDS"] = "1";
}

PlannedOperation Schedule::operation(int number, int set) {
  constexpr runjob_kind kKinds[] = {RUNJOB_ALLREDUCE, RUNJOB_ALLREDUCE,     RUNJOB_ALLREDUCE, RUNJOB_BROADCAST,
                                    RUNJOB_ALLGATHER, RUNJOB_REDUCESCATTER, RUNJOB_ALLTOALL};
  constexpr runjob_reduce_op kOps[] = {RUNJOB_SUM, RUNJOB_SUM, RUNJOB_MAX, RUNJOB_AVERAGE};
  constexpr int kCounts[] = {1, 7, 100, 2000};
  PlannedOperation made;
  made.name = "operation with a long name, number " + std::to_string(number);
  made.kind = one_of(kKinds, random_());
  made.op = made.kind == RUNJOB_ALLREDUCE ? one_of(kOps, random_()) : RUNJOB_SUM;
  made.postscale = made.op == RUNJOB_SUM && made.kind == RUNJOB_ALLREDUCE && below(6) == 0 ? 2 : 1;
  made.set = set;
  made.root = below(static_cast<int>(members_of(set).size()));
  made.count = one_of(kCounts, random_());
  made.is_on_host = made.kind == RUNJOB_ALLREDUCE && set < 0 && below(8) == 0;
  return made;
}

/// Returns operations of the job and of the sets that there are. Often they are those of the last batch, with other
/// values, so that ranks make a plan.
std::vector<PlannedOperation> Schedule::operations(const std::vector<int>& alive) {
  const bool is_repeated = !last_.empty() && below(2) == 0;
  if (!is_repeated) {
    last_.clear();
    const int count = 1 + below(kMostOperations);
    for (int number = 0; number < count; ++number) {
      const int which = below(static_cast<int>(alive.size()) + 1);
      last_.push_back(operation(number, which == 0 ? -1 : alive[static_cast<std::size_t>(which - 1)]));
    }
  }
  for (PlannedOperation& each : last_) each.salt = below(5);
  return last_;
}

/// False when such a set is there.
bool Schedule::add_set(std::vector<int>& alive) {
  std::vector<std::int32_t> members = everyone_;
  std::shuffle(members.begin(), members.end(), random_);
  members.resize(static_cast<std::size_t>(1 + below(size - 1)));
  std::sort(members.begin(), members.end());
  for (const int set : alive) {
    if (members_of(set) == members) return false;
  }
  alive.push_back(static_cast<int>(sets.size()));
  sets.push_back(members);
  steps.push_back({.type = ScheduleStep::Type::kAddSet, .members = members, .set = alive.back()});
  return true;
}

void Schedule::add_step(std::vector<int>& alive) {
  using Type = ScheduleStep::Type;
  const int choice = below(10);
  if (has_sets_ && choice < 3 && alive.size() < kMostSets && add_set(alive)) return;
  if (choice == 3 && !alive.empty()) {
    const auto which = alive.begin() + below(static_cast<int>(alive.size()));
    ScheduleStep step{.type = below(2) == 0 ? Type::kRemoveSet : Type::kRemoveBusySet, .set = *which};
    if (step.type == Type::kRemoveBusySet) step.operations.push_back(operation(0, *which));
    alive.erase(which);
    last_.clear();  // may be the set's
    return steps.push_back(std::move(step));
  }
  if (choice == 4) {
    ScheduleStep step{.type = Type::kJoin};
    for (int rank = 0; rank < size; ++rank) step.extras.push_back(below(3));
    return steps.push_back(std::move(step));
  }
  steps.push_back({.type = Type::kBatch, .operations = operations(alive)});
}

}  // namespace runjob::runtime
