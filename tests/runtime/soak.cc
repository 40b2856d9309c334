#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <numeric>
#include <random>

#include "tests/runtime/calls.hpp"

/// A soak: one rank of a job that runs random operations for a given number of seconds, and checks every result. All
/// ranks draw the same operations; each submits them in an order of its own, some blocking, some not. Some steps
/// repeat. Every epoch initialises anew, and ends with a join of ranks that have had different numbers of steps.
/// Process sets come and go. Not part of the tests:
///     runjob -np 4 build/release/bin/runtime_soak SECONDS [SEED]
/// tests/python/remote/soak_between_hosts.py runs it between hosts.

namespace {

using namespace runjob::runtime;
using Clock = std::chrono::steady_clock;

enum class What { kAllreduce, kBroadcast, kAllgather, kAlltoall, kReducescatter, kBarrier, kAdasum };

/// An operation as all ranks draw it. Sums of small whole numbers are exact in float. An Adasum has other values, which
/// are orthogonal, so that it is their sum: each element is not zero on one rank alone.
struct Drawn {
  std::string name;
  What what;
  std::int64_t rows;  ///< of two elements; allgather: of rank 0
  int root;           ///< a rank of the job
  std::int32_t set = 0;
};

float value(int rank, std::size_t element) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 7 + element) % 31);
}

std::vector<float> input(int rank, std::int64_t rows) {
  std::vector<float> values(static_cast<std::size_t>(rows) * 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(rank, i);
  return values;
}

/// The values of the `index`-th of `members` ranks for an Adasum.
std::vector<float> orthogonal_input(std::size_t index, std::size_t members, std::int64_t rows) {
  std::vector<float> values(static_cast<std::size_t>(rows) * 2);
  for (std::size_t i = index; i < values.size(); i += members) values[i] = value(0, i);
  return values;
}

/// Ranks of the process sets that there are, by number; 0 is the whole job.
using Sets = std::map<std::int32_t, std::vector<int>>;

class Rank {
 public:
  Rank(const Sets& sets, unsigned seed, int step)
      : rank_(runjob_rank()), step_(step), sets_(sets), own_(seed + static_cast<unsigned>(step * 1000 + rank_)) {}

  void run(std::vector<Drawn> operations) {
    std::erase_if(operations, [&](const Drawn& drawn) { return !takes_part(drawn); });
    std::shuffle(operations.begin(), operations.end(), own_);
    std::vector<std::pair<Drawn, runjob_handle>> in_flight;
    // References into it are lent to operations in flight: it must not grow.
    std::vector<std::vector<float>> buffers(operations.size());
    for (std::size_t i = 0; i < operations.size(); ++i) {
      buffers[i] = input_of(operations[i]);
      in_flight.emplace_back(operations[i], submit(operations[i], buffers[i]));
    }
    for (std::size_t i = 0; i < in_flight.size(); ++i) finish(in_flight[i].first, in_flight[i].second, buffers[i]);
  }

  /// One that all ranks do next, alone.
  void run_alone(const Drawn& drawn) {
    if (!takes_part(drawn)) return;
    std::vector<float> buffer = input_of(drawn);
    if (drawn.what != What::kAllreduce) return finish(drawn, submit(drawn, buffer), buffer);
    const std::int64_t shape[] = {drawn.rows, 2};
    runjob_handle handle = 0;
    check(runjob_allreduce(drawn.name.c_str(), buffer.data(), buffer.data(), shape, 2, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1,
                           drawn.set, -1, &handle));
    check_values(drawn, buffer);
  }

 private:
  std::vector<float> input_of(const Drawn& drawn) const {
    if (drawn.what == What::kAdasum) return orthogonal_input(index_in(drawn), ranks_of(drawn).size(), drawn.rows);
    return input(rank_, rows_of(drawn, rank_));
  }

  static std::int64_t rows_of(const Drawn& drawn, int rank) {
    return drawn.what == What::kAllgather ? drawn.rows + rank % 3 : drawn.rows;
  }

  runjob_handle submit(const Drawn& drawn, std::vector<float>& buffer) {
    const std::int64_t shape[] = {rows_of(drawn, rank_), 2};
    const char* name = drawn.name.c_str();
    runjob_handle handle = 0;
    switch (drawn.what) {
      case What::kAllreduce:
        check(runjob_allreduce_async(name, buffer.data(), buffer.data(), shape, 2, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1,
                                     drawn.set, &handle));
        break;
      case What::kBroadcast:
        check(runjob_broadcast_async(name, buffer.data(), shape, 2, RUNJOB_FLOAT32, drawn.root, drawn.set, &handle));
        break;
      case What::kAllgather:
        check(runjob_allgather_async(name, buffer.data(), nullptr, 0, shape, 2, RUNJOB_FLOAT32, drawn.set, &handle));
        break;
      case What::kAlltoall:
        check(runjob_alltoall_async(name, buffer.data(), nullptr, 0, shape, 2, nullptr, 0, RUNJOB_FLOAT32, drawn.set,
                                    &handle));
        break;
      case What::kReducescatter:
        check(runjob_reducescatter_async(name, buffer.data(), nullptr, 0, shape, 2, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1,
                                         drawn.set, &handle));
        break;
      case What::kAdasum:
        check(runjob_allreduce_async(name, buffer.data(), buffer.data(), shape, 2, RUNJOB_FLOAT32, RUNJOB_ADASUM, 1, 1,
                                     drawn.set, &handle));
        break;
      case What::kBarrier:
        check(runjob_barrier_async(name, drawn.set, &handle));
        break;
    }
    return handle;
  }

  void finish(const Drawn& drawn, runjob_handle handle, const std::vector<float>& buffer) {
    const bool has_output =
        drawn.what == What::kAllgather || drawn.what == What::kAlltoall || drawn.what == What::kReducescatter;
    if (has_output) return check_values(drawn, take_output<float>(handle).first);
    check(runjob::runtime::finish(handle));
    if (drawn.what != What::kBarrier) check_values(drawn, buffer);
  }

  const std::vector<int>& ranks_of(const Drawn& drawn) const { return sets_.at(drawn.set); }
  bool takes_part(const Drawn& drawn) const {
    return std::find(ranks_of(drawn).begin(), ranks_of(drawn).end(), rank_) != ranks_of(drawn).end();
  }

  /// This rank's index among the operation's ranks.
  std::size_t index_in(const Drawn& drawn) const {
    const std::vector<int>& ranks = ranks_of(drawn);
    return static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin());
  }

  float sum(const Drawn& drawn, std::size_t element) const {
    float result = 0;
    for (const int rank : ranks_of(drawn)) result += value(rank, element);
    return result;
  }

  void check_values(const Drawn& drawn, const std::vector<float>& values) const {
    std::vector<float> expected;
    if (drawn.what == What::kBroadcast) expected = input(drawn.root, drawn.rows);
    if (drawn.what == What::kAllreduce) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(drawn.rows) * 2; ++i) expected.push_back(sum(drawn, i));
    }
    for (std::size_t i = 0; drawn.what == What::kAdasum && i < static_cast<std::size_t>(drawn.rows) * 2; ++i)
      expected.push_back(value(0, i));
    const std::vector<int>& ranks = ranks_of(drawn);
    const auto part = static_cast<std::size_t>(drawn.rows) / ranks.size() * 2, first = part * index_in(drawn);
    for (const int rank : ranks) {
      const std::vector<float> theirs = input(rank, rows_of(drawn, rank));
      if (drawn.what == What::kAllgather) expected.insert(expected.end(), theirs.begin(), theirs.end());
      for (std::size_t i = first; drawn.what == What::kAlltoall && i < first + part; ++i) expected.push_back(theirs[i]);
    }
    for (std::size_t i = first; drawn.what == What::kReducescatter && i < first + part; ++i)
      expected.push_back(sum(drawn, i));
    if (values == expected) return;
    const auto [wrong, right] = std::mismatch(values.begin(), values.end(), expected.begin(), expected.end());
    const std::string where =
        wrong == values.end() || right == expected.end()
            ? std::to_string(values.size()) + " values instead of " + std::to_string(expected.size())
            : "value " + std::to_string(wrong - values.begin()) + " of " + std::to_string(values.size()) + " is " +
                  std::to_string(*wrong) + " instead of " + std::to_string(*right);
    require(false, drawn.name + ", kind " + std::to_string(static_cast<int>(drawn.what)) + ", " +
                       std::to_string(drawn.rows) + " rows, set " + std::to_string(drawn.set) + ", root " +
                       std::to_string(drawn.root) + ", step " + std::to_string(step_) + ": " + where);
  }

  const int rank_, step_;
  const Sets& sets_;
  std::mt19937 own_;
};

std::int64_t draw_rows(std::mt19937& random, int size) {
  constexpr std::int64_t kMost[] = {4, 100, 3000, 40000};
  const auto most = static_cast<std::uint32_t>(kMost[random() % 4 == 0 ? 3 : random() % 3]);
  return static_cast<std::int64_t>(random() % most) * size;
}

/// Adds a set of random ranks, or removes one. Sets that exist already are refused on all ranks.
void change_sets(std::mt19937& common, int size, Sets& sets) {
  if (sets.size() > 1 && common() % 2 == 0) {
    const auto victim = std::next(sets.begin(), 1 + static_cast<std::ptrdiff_t>(common() % (sets.size() - 1)));
    check(runjob_process_set_remove(victim->first));
    sets.erase(victim);
    return;
  }
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank)
    if (common() % 2 == 0) ranks.push_back(rank);
  std::int32_t id = 0;
  const runjob_code code = runjob_process_set_add(ranks.data(), static_cast<std::int32_t>(ranks.size()), &id);
  const bool exists = std::any_of(sets.begin(), sets.end(), [&](const auto& set) { return set.second == ranks; });
  require((code == RUNJOB_INVALID_ARGUMENT) == (exists || ranks.empty()), "a set was refused, or was not");
  if (code == RUNJOB_OK) sets[id] = ranks;
}

/// The same step again and again, as in training, for which the ranks make a plan; now and then all leave an operation
/// out. The operations done.
long repeat(std::mt19937& common, Rank& self, const std::vector<Drawn>& step) {
  long done = 0;
  for (auto times = 2 + common() % 12; times > 0; --times) {
    std::vector<Drawn> operations = step;
    if (common() % 8 == 0 && !operations.empty())
      operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(common() % operations.size()));
    done += std::ssize(operations);
    self.run(std::move(operations));
  }
  return done;
}

/// Adds the operations done. False when rank 0's time is up.
bool run_epoch(std::mt19937& common, unsigned seed, Clock::time_point end, long& done) {
  check(runjob_init_with_process_sets(nullptr, nullptr, 0, 1));
  const int size = runjob_size(), rank = runjob_rank();
  Sets sets;
  for (int each = 0; each < size; ++each) sets[0].push_back(each);
  std::int64_t goes_on = 1;
  for (int step = 0; step < 200 && goes_on == 1; ++step) {
    goes_on = Clock::now() < end ? 1 : 0;
    const std::int64_t one = 1;
    runjob_handle handle = 0;
    check(runjob_broadcast("goes on", &goes_on, &one, 1, RUNJOB_INT64, 0, 0, -1, &handle));
    if (goes_on == 0) break;
    std::vector<Drawn> operations;
    const int count = static_cast<int>(common() % 3 == 0 ? common() % 40 : common() % 4);
    for (int i = 0; i < count; ++i) {
      const auto what = static_cast<What>(common() % 7);
      // Few names, so that most are known, with few signatures, so that some are changed.
      const auto& [set, ranks] =
          *std::next(sets.begin(), common() % 2 == 0 ? 0 : static_cast<std::ptrdiff_t>(common() % sets.size()));
      const int members = static_cast<int>(ranks.size());
      const std::int64_t rows = draw_rows(common, members);
      operations.push_back({"t" + std::to_string(i), what, rows, ranks[common() % ranks.size()], set});
    }
    if (common() % 8 == 0) change_sets(common, size, sets);
    std::erase_if(operations, [&](const Drawn& drawn) { return sets.count(drawn.set) == 0; });
    Rank self(sets, seed, step);
    if (operations.size() == 1 || common() % 4 == 0) {
      for (const Drawn& drawn : operations) self.run_alone(drawn);
    } else {
      self.run(operations);
    }
    done += static_cast<long>(operations.size());
    if (common() % 4 == 0) done += repeat(common, self, operations);
  }
  for (int extra = 0; extra < rank % 3; ++extra) {
    std::vector<float> ones(16, 1);
    check(runjob::runtime::finish(start_allreduce("extra" + std::to_string(extra), ones, ones, RUNJOB_FLOAT32)));
    float ranks = 0;
    for (int other = 0; other < size; ++other) ranks += other % 3 > extra ? 1 : 0;
    require(ones == std::vector<float>(16, ranks), "a sum with joined ranks is wrong");
  }
  runjob_handle join = 0;
  check(runjob_join_async(&join));
  const auto last = take_output<std::int32_t>(join).first;
  require(last.size() == 1 && last[0] >= 0 && last[0] < size, "the last rank to join is wrong");
  check(runjob_shutdown());
  return goes_on == 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: runtime_soak SECONDS [SEED]\n");
    return 2;
  }
  const auto end = Clock::now() + std::chrono::seconds(std::atol(argv[1]));
  const auto seed = static_cast<unsigned>(argc > 2 ? std::atol(argv[2]) : 1);
  std::mt19937 common(seed);
  try {
    long epochs = 0, operations = 0;
    while (run_epoch(common, seed + static_cast<unsigned>(epochs), end, operations)) ++epochs;
    std::printf("%ld operations in %ld epochs, all right\n", operations, epochs + 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "runtime_soak: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
