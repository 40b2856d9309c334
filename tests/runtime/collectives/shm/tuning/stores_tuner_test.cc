#include "runtime/collectives/shm/tuning/stores_tuner.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;
using namespace std::chrono_literals;

namespace {

struct Costs {
  std::chrono::nanoseconds plain_write, plain_read, streamed_write, streamed_read;
};
const StoresTuner::Sizes k4096 = StoresTuner::size_of_message(4096);
constexpr Costs kApart{1700ns, 1500ns, 600ns, 900ns}, kTogether{300ns, 500ns, 500ns, 1100ns};

/// Whether the next message uses streaming stores.
bool is_streamed(StoresTuner& tuner, std::size_t bytes) {
  return tuner.stores(bytes) == Stores::kStreaming;
}

void advance(StoresTuner& tuner, std::uint64_t exchanges, std::size_t bytes) {
  for (std::uint64_t i = 0; i < exchanges; ++i) tuner.count(StoresTuner::size_of_message(bytes));
}

enum class Part { kBoth, kWrite, kRead, kInTurn };

/// A period's trials.
void try_both(StoresTuner& tuner, std::size_t bytes, const Costs& costs, Part part = Part::kBoth) {
  for (std::uint64_t i = 0; i < 2 * StoresTuner::kTrials; ++i) {
    const bool streams = is_streamed(tuner, bytes);
    const Part now = part != Part::kInTurn ? part : i % 2 == 0 ? Part::kWrite : Part::kRead;
    if (tuner.is_timed(bytes)) {
      if (now != Part::kRead) tuner.add_write(bytes, streams ? costs.streamed_write : costs.plain_write);
      if (now != Part::kWrite) tuner.add_read(bytes, streams ? costs.streamed_read : costs.plain_read);
    }
    tuner.count(StoresTuner::size_of_message(bytes));
  }
}

/// To where the first trials begin.
StoresTuner first_trials(std::size_t bytes) {
  StoresTuner tuner;
  advance(tuner, StoresTuner::kFirstPeriod, bytes);
  return tuner;
}

}  // namespace

TEST_CASE("both kinds of stores are tried in each period, and the last messages of each are timed", "[runtime][unit]") {
  StoresTuner tuner;
  advance(tuner, StoresTuner::kPeriod, 4096);
  std::uint64_t streamed = 0, timed = 0, timed_streamed = 0;
  for (std::uint64_t i = 0; i < StoresTuner::kPeriod; ++i, tuner.count(k4096)) {
    const bool streams = is_streamed(tuner, 4096), is_timed = tuner.is_timed(4096);
    streamed += streams ? 1 : 0;
    timed += is_timed ? 1 : 0;
    timed_streamed += streams && is_timed ? 1 : 0;
  }
  CHECK(streamed == StoresTuner::kTrials);
  CHECK(timed == 2 * StoresTuner::kTimed);
  CHECK(timed_streamed == StoresTuner::kTimed);
}

TEST_CASE("the first messages of a job use cached stores, and soon both are tried", "[runtime][unit]") {
  StoresTuner tuner;
  std::uint64_t first = 0;
  for (; !is_streamed(tuner, 4096); ++first) tuner.count(k4096);
  CHECK(first == StoresTuner::kFirstPeriod + StoresTuner::kTrials);
  std::uint64_t streamed = 0;
  for (; first < StoresTuner::kPeriod; ++first, tuner.count(k4096)) streamed += is_streamed(tuner, 4096) ? 1 : 0;
  CHECK(streamed == 4 * StoresTuner::kTrials);  // from 64, 256, 1024 and 4096 on
}

TEST_CASE("the stores that take less for writing and reading together are kept", "[runtime][unit]") {
  StoresTuner tuner = first_trials(4096);
  try_both(tuner, 4096, kApart);
  CHECK(is_streamed(tuner, 4096));
  CHECK(is_streamed(tuner, 8191));
  CHECK_FALSE(is_streamed(tuner, 8192));  // each power of two by itself
  CHECK_FALSE(is_streamed(tuner, 64));
  advance(tuner, 256 - StoresTuner::kFirstPeriod - 2 * StoresTuner::kTrials, 4096);
  try_both(tuner, 4096, kTogether);
  CHECK_FALSE(is_streamed(tuner, 4096));
}

TEST_CASE("messages that other work has delayed do not count", "[runtime][unit]") {
  StoresTuner tuner = first_trials(4096);
  for (std::uint64_t i = 0; i < 2 * StoresTuner::kTrials; ++i) {
    if (tuner.is_timed(4096)) {
      const bool streams = is_streamed(tuner, 4096);
      tuner.add_write(4096, 10ns);
      tuner.add_read(4096, !streams ? 3000ns : i % 4 == 0 ? 1ms : 1000ns);
    }
    tuner.count(k4096);
  }
  CHECK(is_streamed(tuner, 4096));
}

TEST_CASE("a rank that has only read keeps its choice", "[runtime][unit]") {
  StoresTuner tuner = first_trials(4096);
  try_both(tuner, 4096, kApart, Part::kRead);
  CHECK_FALSE(is_streamed(tuner, 4096));
  advance(tuner, 256 - StoresTuner::kFirstPeriod - 2 * StoresTuner::kTrials, 4096);
  try_both(tuner, 4096, kApart);
  REQUIRE(is_streamed(tuner, 4096));
  advance(tuner, 1024 - 256 - 2 * StoresTuner::kTrials, 4096);
  try_both(tuner, 4096, kTogether, Part::kRead);
  CHECK(is_streamed(tuner, 4096));
}

TEST_CASE("a rank that has only written needs less than half the time", "[runtime][unit]") {
  StoresTuner tuner = first_trials(4096);
  try_both(tuner, 4096, kApart, Part::kWrite);
  CHECK(is_streamed(tuner, 4096));
  advance(tuner, 256 - StoresTuner::kFirstPeriod - 2 * StoresTuner::kTrials, 4096);
  try_both(tuner, 4096, {1000ns, 0ns, 600ns, 0ns}, Part::kWrite);
  CHECK_FALSE(is_streamed(tuner, 4096));
}

TEST_CASE("in broadcasts ranks learn from what they write and what they read", "[runtime][unit]") {
  StoresTuner tuner = first_trials(16384);
  try_both(tuner, 16384, kApart, Part::kInTurn);
  CHECK(is_streamed(tuner, 16384));
}

TEST_CASE("messages of different sizes in one exchange count for their own sizes", "[runtime][unit]") {
  StoresTuner tuner;
  const StoresTuner::Sizes both = StoresTuner::size_of_message(2048) | StoresTuner::size_of_message(16384);
  for (std::uint64_t i = 0; i < StoresTuner::kFirstPeriod + StoresTuner::kTrials; ++i) tuner.count(both);
  CHECK(is_streamed(tuner, 2048));
  CHECK(is_streamed(tuner, 16384));
  CHECK_FALSE(is_streamed(tuner, 4096));
  CHECK(StoresTuner::size_of_message(StoresTuner::kLeastBytes - 1) == 0);
}
