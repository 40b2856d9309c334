#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"
#include "tests/runtime/collectives/nccl/schedule.hpp"

/// Random jobs over the stand-ins: every collective, groups of ranks, joins, sets that come and go, and half of the
/// jobs have a failure, a GPU that hangs, a killed rank or one that leaves. Without a fault all values are right and
/// no call fails; with one, all values are right until the first error, every rank ends, and nothing hangs.
/// TESTS_GPU_SCHEDULES jobs, 8 without it, with seeds from TESTS_GPU_SEED on.

using namespace runjob::runtime;

namespace {

/// Seconds after which a rank counts as one that hangs.
constexpr unsigned kMostSeconds = 60;

int number_of(const char* variable, int usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : std::atoi(text);
}

/// A value or an answer that is wrong whatever the fault is.
struct Wrong : std::logic_error {
  using std::logic_error::logic_error;
};

float value_of(int rank, int salt, int element) {
  return static_cast<float>((3 * rank + salt + element) % 5);
}

Floats values_of(int rank, int salt, int from, int count) {
  Floats values;
  for (int i = 0; i < count; ++i) values.push_back(value_of(rank, salt, from + i));
  return values;
}

/// The input of a member to an operation, and its result, by the operation's definition.
class Reference {
 public:
  Reference(const PlannedOperation& operation, const std::vector<std::int32_t>& members, int rank)
      : operation_(operation), members_(members), rank_(rank) {
    own_ = static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
  }

  Floats input() const { return values_of(rank_, operation_.salt, 0, part_of(own_)); }

  Floats result() const {
    const int count = operation_.count, size = static_cast<int>(members_.size());
    Floats result;
    switch (operation_.kind) {
      case RUNJOB_BROADCAST:
        return values_of(members_[static_cast<std::size_t>(operation_.root)], operation_.salt, 0, count);
      case RUNJOB_ALLGATHER:
        for (int i = 0; i < size; ++i) append(result, values_of(rank_of(i), operation_.salt, 0, part_of(i)));
        return result;
      case RUNJOB_ALLTOALL:
        for (int i = 0; i < size; ++i) append(result, values_of(rank_of(i), operation_.salt, own_ * count, count));
        return result;
      case RUNJOB_REDUCESCATTER:
        return reduced(own_ * count, count);
      default:
        return reduced(0, count);
    }
  }

 private:
  int rank_of(int member) const { return members_[static_cast<std::size_t>(member)]; }
  /// The number of elements that a member gives: different ones where that is allowed.
  int part_of(int member) const {
    if (operation_.kind == RUNJOB_ALLGATHER) return operation_.count + member;
    const bool is_divided = operation_.kind == RUNJOB_ALLTOALL || operation_.kind == RUNJOB_REDUCESCATTER;
    return operation_.count * (is_divided ? static_cast<int>(members_.size()) : 1);
  }
  static void append(Floats& to, const Floats& from) { to.insert(to.end(), from.begin(), from.end()); }

  Floats reduced(int from, int count) const {
    Floats result;
    for (int i = from; i < from + count; ++i) {
      float sum = 0, most = 0;
      for (const std::int32_t member : members_) {
        sum += value_of(member, operation_.salt, i);
        most = std::max(most, value_of(member, operation_.salt, i));
      }
      if (operation_.op == RUNJOB_AVERAGE) sum /= static_cast<float>(members_.size());
      result.push_back(operation_.op == RUNJOB_MAX ? most : sum * static_cast<float>(operation_.postscale));
    }
    return result;
  }

  const PlannedOperation& operation_;
  const std::vector<std::int32_t>& members_;
  const int rank_;
  int own_ = 0;
};

bool is_close(const Floats& found, const Floats& expected) {
  return std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                    [](float a, float b) { return std::abs(a - b) <= 1e-5f * (1 + std::abs(b)); });
}

/// An operation in flight. Its memory is left where it is when the job has failed, because a GPU may be at work on it.
class Submitted {
 public:
  Submitted(const PlannedOperation& operation, const std::vector<std::int32_t>& members, std::int32_t set, int rank,
            const UserStream& stream)
      : operation_(operation), stream_(stream), expected_(Reference(operation, members, rank).result()) {
    Floats input = Reference(operation, members, rank).input();
    extent_ = static_cast<std::int64_t>(input.size());
    if (operation.is_on_host) {
      host_ = input;
      handle_ = start_allreduce(operation.name, host_, host_, RUNJOB_FLOAT32, operation.op, 1, operation.postscale);
      return;
    }
    in_ = std::make_unique<GpuTensor<float>>(stream, input);
    const bool is_in_place = operation.kind == RUNJOB_ALLREDUCE || operation.kind == RUNJOB_BROADCAST;
    if (!is_in_place) out_ = std::make_unique<GpuTensor<float>>(stream, Floats(expected_.size()));
    const runjob_tensor tensor = described(*in_, result(), extent_);
    runjob_operation call = gpu_operation(operation.name.c_str(), operation.kind, tensor, stream);
    call.op = operation.op;
    call.postscale = operation.postscale;
    call.root = members[static_cast<std::size_t>(operation.root)];
    call.process_set = set;
    handle_ = start(call);
  }

  /// Waits on the host, by looking, or as a stream does, and compares. Errors  std::runtime_error with the job's.
  void end(int way) {
    if (way == 1) {
      while (runjob_poll(handle_) == 0) ::usleep(50);
    } else if (way == 2 && !operation_.is_on_host) {
      check(runjob_wait_on_stream(handle_, stream_.get(), -1));
      check(runjob_check(-1));
    }
    check(runjob_wait(handle_, -1));
    const Floats found = operation_.is_on_host ? host_ : result().values();
    if (!is_close(found, expected_)) {
      const std::size_t at = static_cast<std::size_t>(
          std::mismatch(found.begin(), found.end(), expected_.begin(), expected_.end()).first - found.begin());
      throw Wrong("the values of " + operation_.name + ", of kind " + std::to_string(operation_.kind) + ", set " +
                  std::to_string(operation_.set) + ", waited for in way " + std::to_string(way) + ": at " +
                  std::to_string(at) + " of " + std::to_string(expected_.size()) + " there is " +
                  std::to_string(found.at(at)) + " and not " + std::to_string(expected_.at(at)));
    }
    runjob_release(handle_);
  }
  void end_somehow() { static_cast<void>(finish(handle_)); }
  void leave_memory() {
    static_cast<void>(in_.release());
    static_cast<void>(out_.release());
  }

 private:
  const GpuTensor<float>& result() const { return out_ ? *out_ : *in_; }

  const PlannedOperation& operation_;
  const UserStream& stream_;
  const Floats expected_;
  std::int64_t extent_ = 0;
  Floats host_;
  std::unique_ptr<GpuTensor<float>> in_, out_;
  runjob_handle handle_ = 0;
};

/// One rank's part in a schedule.
class Part {
 public:
  Part(const Schedule& schedule, int rank)
      : schedule_(schedule),
        rank_(rank),
        own_random_(schedule.seed * 31 + static_cast<unsigned>(rank)),
        stream_(*new UserStream(rank)),  // lasts, as the memory of a failed job
        sets_(schedule.sets.size()) {}
  ~Part() {
    for (auto& each : in_flight_) static_cast<void>((each->leave_memory(), each.release()));
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  /// Errors  std::runtime_error with the first error of the job; Wrong.
  void run() {
    for (int step = 0; step < static_cast<int>(schedule_.steps.size()); ++step) {
      is_last_ =
          schedule_.fault.rank == rank_ && schedule_.fault.step == step &&
          (schedule_.fault.type == ScheduleFault::Type::kKill || schedule_.fault.type == ScheduleFault::Type::kLeave);
      if (!run(schedule_.steps[static_cast<std::size_t>(step)])) return;
    }
    check(runjob_check(-1));
  }

 private:
  using Type = ScheduleStep::Type;

  /// False when this rank goes.
  bool run(const ScheduleStep& step) {
    const auto set = static_cast<std::size_t>(std::max(step.set, 0));
    switch (step.type) {
      case Type::kBatch:
        begin(step.operations);
        if (is_last_) return go();
        end_all();
        break;
      case Type::kAddSet:
        check(runjob_process_set_add(step.members.data(), static_cast<std::int32_t>(step.members.size()), &sets_[set]));
        break;
      case Type::kRemoveSet:
        check(runjob_process_set_remove(sets_[set]));
        break;
      case Type::kRemoveBusySet:
        begin(step.operations);
        check(runjob_process_set_remove(sets_[set]));
        for (auto& each : in_flight_) {
          each->end_somehow();
          each->leave_memory();
        }
        in_flight_.clear();
        break;
      case Type::kJoin:
        join(step.extras);
        break;
    }
    return is_last_ ? go() : true;
  }

  bool go() const {
    if (schedule_.fault.type == ScheduleFault::Type::kKill) ::raise(SIGKILL);
    return false;
  }

  void begin(const std::vector<PlannedOperation>& operations) {
    std::vector<const PlannedOperation*> order;
    for (const PlannedOperation& each : operations) order.push_back(&each);
    std::shuffle(order.begin(), order.end(), own_random_);
    for (const PlannedOperation* each : order) {
      const std::vector<std::int32_t>& members = schedule_.members_of(each->set);
      if (std::find(members.begin(), members.end(), rank_) == members.end()) continue;
      const std::int32_t set = each->set < 0 ? 0 : sets_[static_cast<std::size_t>(each->set)];
      in_flight_.push_back(std::make_unique<Submitted>(*each, members, set, rank_, stream_));
    }
  }

  void end_all() {
    std::shuffle(in_flight_.begin(), in_flight_.end(), own_random_);
    for (auto& each : in_flight_) each->end(static_cast<int>(own_random_() % 3));
    in_flight_.clear();
  }

  /// The ranks that have joined give zeros.
  void join(const std::vector<int>& extras) {
    for (int turn = 0; turn < extras[static_cast<std::size_t>(rank_)]; ++turn) {
      const std::int64_t extent = 2;
      const auto tensor = std::make_unique<GpuTensor<float>>(stream_, Floats(2, static_cast<float>(rank_ + 1)));
      const auto one = described(*tensor, *tensor, extent);
      const runjob_handle handle = start(gpu_operation("extra", RUNJOB_ALLREDUCE, one, stream_));
      check(finish(handle));
      float sum = 0;
      for (std::size_t rank = 0; rank < extras.size(); ++rank)
        sum += extras[rank] > turn ? static_cast<float>(rank + 1) : 0;
      if (tensor->values() != Floats(2, sum)) throw Wrong("the sum with ranks that have joined");
    }
    runjob_handle handle = 0;
    check(runjob_join(-1, &handle));
    runjob_release(handle);
  }

  const Schedule& schedule_;
  const int rank_;
  std::mt19937 own_random_;
  const UserStream& stream_;
  std::vector<std::int32_t> sets_;  ///< their ids
  std::vector<std::unique_ptr<Submitted>> in_flight_;
  bool is_last_ = false;  ///< this rank goes in this step
};

/// Runs a rank's part, and then a job after it, as an elastic job does after a failure that leaves all ranks.
Outcome run_part(const Schedule& schedule, int rank) {
  using Type = ScheduleFault::Type;
  ::alarm(kMostSeconds);
  const ScheduleFault& fault = schedule.fault;
  const bool is_faulty = fault.rank == rank;
  if (is_faulty && fault.type == Type::kFail) ::setenv("RUNJOB_STAND_IN_FAIL", fault.call.c_str(), 1);
  if (is_faulty && fault.type == Type::kHang) ::setenv("RUNJOB_STAND_IN_HANG", fault.call.c_str(), 1);
  try {
    check(runjob_init());  // a rank may be killed as soon as it has joined
    Part(schedule, rank).run();
  } catch (const Wrong&) {
    throw;
  } catch (const std::runtime_error& error) {
    if (fault.type == Type::kNone) throw;
    require(std::string(error.what()).size() > 10, "an error has a text");
  }
  check(runjob_shutdown());
  if (fault.type != Type::kNone && fault.type != Type::kFail) return {};
  check(runjob_init());
  const runjob_code again = sum_of_ones(rank, "again");
  if (fault.type == Type::kNone) check(again);  // the call that fails may come only now
  check(runjob_shutdown());
  return {};
}

}  // namespace

TEST_CASE("random jobs on GPUs have right values or errors, and never hang, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  const int first = number_of("TESTS_GPU_SEED", 0), count = number_of("TESTS_GPU_SCHEDULES", 8);
  for (int seed = first; seed < first + count; ++seed) {
    const Schedule schedule(static_cast<unsigned>(seed));
    RankOptions options = on_one_host(schedule.size);
    options.environment = schedule.environment;
    const std::vector<Outcome> outcomes = run_ranks(options, [&](int rank) { return run_part(schedule, rank); });
    for (int rank = 0; rank < schedule.size; ++rank) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      const bool is_killed = schedule.fault.type == ScheduleFault::Type::kKill && schedule.fault.rank == rank;
      INFO("TESTS_GPU_SEED=" << seed << ", rank " << rank << ": " << outcome.message);
      CHECK(outcome.code == RUNJOB_OK);
      CHECK(outcome.wait_status == (is_killed ? SIGKILL : 0));
    }
  }
}
