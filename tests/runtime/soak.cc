#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

#include "tests/runtime/calls.hpp"

/// A soak: one rank of a job that runs random operations for a given number of seconds, and checks every result. All ranks draw
/// the same operations; each submits them in an order of its own, some blocking, some not. Every epoch initialises anew, and
/// ends with a join of ranks that have had different numbers of steps. Not part of the tests:
///     runjob -np 4 build/release/bin/runtime_soak SECONDS [SEED]

namespace {

using namespace runjob::runtime;
using Clock = std::chrono::steady_clock;

enum class What { kAllreduce, kBroadcast, kAllgather, kAlltoall, kReducescatter, kBarrier };

/// An operation as all ranks draw it. Sums of small whole numbers are exact in float.
struct Drawn {
  std::string name;
  What what;
  std::int64_t rows;  ///< of two elements; allgather: of rank 0
  int root;
};

float value(int rank, std::size_t element) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 7 + element) % 31);
}

std::vector<float> input(int rank, std::int64_t rows) {
  std::vector<float> values(static_cast<std::size_t>(rows) * 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(rank, i);
  return values;
}

class Rank {
 public:
  Rank(unsigned seed, int step)
      : rank_(runjob_rank()), size_(runjob_size()), own_(seed + static_cast<unsigned>(step * 1000 + rank_)) {}

  void run(std::vector<Drawn> operations) {
    std::shuffle(operations.begin(), operations.end(), own_);
    std::vector<std::pair<Drawn, runjob_handle>> in_flight;
    // References into it are lent to operations in flight: it must not grow.
    std::vector<std::vector<float>> buffers(operations.size());
    for (std::size_t i = 0; i < operations.size(); ++i) {
      buffers[i] = input(rank_, rows_of(operations[i], rank_));
      in_flight.emplace_back(operations[i], submit(operations[i], buffers[i]));
    }
    for (std::size_t i = 0; i < in_flight.size(); ++i) finish(in_flight[i].first, in_flight[i].second, buffers[i]);
  }

  /// One that all ranks do next, alone.
  void run_alone(const Drawn& drawn) {
    std::vector<float> buffer = input(rank_, rows_of(drawn, rank_));
    if (drawn.what != What::kAllreduce) return finish(drawn, submit(drawn, buffer), buffer);
    const std::int64_t shape[] = {drawn.rows, 2};
    runjob_handle handle = 0;
    check(runjob_allreduce(drawn.name.c_str(), buffer.data(), buffer.data(), shape, 2, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1,
                           0, -1, &handle));
    check_values(drawn, buffer);
  }

 private:
  static std::int64_t rows_of(const Drawn& drawn, int rank) {
    return drawn.what == What::kAllgather ? drawn.rows + rank % 3 : drawn.rows;
  }

  runjob_handle submit(const Drawn& drawn, std::vector<float>& buffer) {
    const std::int64_t shape[] = {rows_of(drawn, rank_), 2};
    const char* name = drawn.name.c_str();
    runjob_handle handle = 0;
    switch (drawn.what) {
      case What::kAllreduce:
        check(runjob_allreduce_async(name, buffer.data(), buffer.data(), shape, 2, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1, 0,
                                     &handle));
        break;
      case What::kBroadcast:
        check(runjob_broadcast_async(name, buffer.data(), shape, 2, RUNJOB_FLOAT32, drawn.root, 0, &handle));
        break;
      case What::kAllgather:
        check(runjob_allgather_async(name, buffer.data(), nullptr, 0, shape, 2, RUNJOB_FLOAT32, 0, &handle));
        break;
      case What::kAlltoall:
        check(runjob_alltoall_async(name, buffer.data(), nullptr, 0, shape, 2, nullptr, 0, RUNJOB_FLOAT32, 0, &handle));
        break;
      case What::kReducescatter:
        check(runjob_reducescatter_async(name, buffer.data(), nullptr, 0, shape, 2, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1, 0,
                                         &handle));
        break;
      case What::kBarrier:
        check(runjob_barrier_async(name, 0, &handle));
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

  float sum(std::size_t element) const {
    float result = 0;
    for (int rank = 0; rank < size_; ++rank) result += value(rank, element);
    return result;
  }

  void check_values(const Drawn& drawn, const std::vector<float>& values) const {
    std::vector<float> expected;
    if (drawn.what == What::kBroadcast) expected = input(drawn.root, drawn.rows);
    if (drawn.what == What::kAllreduce) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(drawn.rows) * 2; ++i) expected.push_back(sum(i));
    }
    const auto part = static_cast<std::size_t>(drawn.rows / size_) * 2, first = part * static_cast<std::size_t>(rank_);
    for (int rank = 0; rank < size_; ++rank) {
      const std::vector<float> theirs = input(rank, rows_of(drawn, rank));
      if (drawn.what == What::kAllgather) expected.insert(expected.end(), theirs.begin(), theirs.end());
      for (std::size_t i = first; drawn.what == What::kAlltoall && i < first + part; ++i) expected.push_back(theirs[i]);
    }
    for (std::size_t i = first; drawn.what == What::kReducescatter && i < first + part; ++i) expected.push_back(sum(i));
    require(values == expected, drawn.name + " is wrong");
  }

  const int rank_, size_;
  std::mt19937 own_;
};

std::int64_t draw_rows(std::mt19937& random, int size) {
  constexpr std::int64_t kMost[] = {4, 100, 3000, 40000};
  const auto most = static_cast<std::uint32_t>(kMost[random() % 4 == 0 ? 3 : random() % 3]);
  return static_cast<std::int64_t>(random() % most) * size;
}

/// Adds the operations done. False when rank 0's time is up.
bool run_epoch(std::mt19937& common, unsigned seed, Clock::time_point end, long& done) {
  check(runjob_init());
  const int size = runjob_size(), rank = runjob_rank();
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
      const auto what = static_cast<What>(common() % 6);
      // Few names, so that most are known, with few signatures, so that some are changed.
      operations.push_back({"t" + std::to_string(i), what, draw_rows(common, size), static_cast<int>(common()) % size});
      operations.back().root = std::abs(operations.back().root);
    }
    Rank self(seed, step);
    if (operations.size() == 1 || common() % 4 == 0) {
      for (const Drawn& drawn : operations) self.run_alone(drawn);
    } else {
      self.run(operations);
    }
    done += static_cast<long>(operations.size());
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
