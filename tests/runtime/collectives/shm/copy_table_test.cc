#include "runtime/collectives/shm/copy_table.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;
using namespace std::chrono_literals;

namespace {

struct Costs {
  std::chrono::nanoseconds plain_write, plain_read, streamed_write, streamed_read;
};
const CopyTable::Sizes k4096 = CopyTable::size_of_message(4096);
constexpr Costs kApart{1700ns, 1500ns, 600ns, 900ns}, kTogether{300ns, 500ns, 500ns, 1100ns};

void advance(CopyTable& table, std::uint64_t exchanges, std::size_t bytes) {
  for (std::uint64_t i = 0; i < exchanges; ++i) table.count(CopyTable::size_of_message(bytes));
}

enum class Part { kBoth, kWrite, kRead, kInTurn };

/// A period's trials.
void try_both(CopyTable& table, std::size_t bytes, const Costs& costs, Part part = Part::kBoth) {
  for (std::uint64_t i = 0; i < 2 * CopyTable::kTries; ++i) {
    const bool is_streamed = table.is_streamed(bytes);
    const Part now = part != Part::kInTurn ? part : i % 2 == 0 ? Part::kWrite : Part::kRead;
    if (table.is_timed(bytes)) {
      if (now != Part::kRead) table.add_write(bytes, is_streamed ? costs.streamed_write : costs.plain_write);
      if (now != Part::kWrite) table.add_read(bytes, is_streamed ? costs.streamed_read : costs.plain_read);
    }
    table.count(CopyTable::size_of_message(bytes));
  }
}

/// To where the first trials begin.
CopyTable first_trials(std::size_t bytes) {
  CopyTable table;
  advance(table, CopyTable::kFirstPeriod, bytes);
  return table;
}

}  // namespace

TEST_CASE("both copies are tried in each period, the last messages of each with a clock", "[runtime][unit]") {
  CopyTable table;
  advance(table, CopyTable::kPeriod, 4096);
  std::uint64_t streamed = 0, timed = 0, timed_streamed = 0;
  for (std::uint64_t i = 0; i < CopyTable::kPeriod; ++i, table.count(k4096)) {
    const bool is_streamed = table.is_streamed(4096), is_timed = table.is_timed(4096);
    streamed += is_streamed ? 1 : 0;
    timed += is_timed ? 1 : 0;
    timed_streamed += is_streamed && is_timed ? 1 : 0;
  }
  CHECK(streamed == CopyTable::kTries);
  CHECK(timed == 2 * CopyTable::kTimed);
  CHECK(timed_streamed == CopyTable::kTimed);
}

TEST_CASE("a job's first messages are written as usual, and soon both copies are tried", "[runtime][unit]") {
  CopyTable table;
  std::uint64_t first = 0;
  for (; !table.is_streamed(4096); ++first) table.count(k4096);
  CHECK(first == CopyTable::kFirstPeriod + CopyTable::kTries);
  std::uint64_t streamed = 0;
  for (; first < CopyTable::kPeriod; ++first, table.count(k4096)) streamed += table.is_streamed(4096) ? 1 : 0;
  CHECK(streamed == 4 * CopyTable::kTries);  // from 64, 256, 1024 and 4096 on
}

TEST_CASE("the copy that takes less for writing and reading together is kept", "[runtime][unit]") {
  CopyTable table = first_trials(4096);
  try_both(table, 4096, kApart);
  CHECK(table.is_streamed(4096));
  CHECK(table.is_streamed(8191));
  CHECK_FALSE(table.is_streamed(8192));  // each power of two by itself
  CHECK_FALSE(table.is_streamed(64));
  advance(table, 256 - CopyTable::kFirstPeriod - 2 * CopyTable::kTries, 4096);
  try_both(table, 4096, kTogether);
  CHECK_FALSE(table.is_streamed(4096));
}

TEST_CASE("messages that something else has delayed do not count", "[runtime][unit]") {
  CopyTable table = first_trials(4096);
  for (std::uint64_t i = 0; i < 2 * CopyTable::kTries; ++i) {
    if (table.is_timed(4096)) {
      const bool is_streamed = table.is_streamed(4096);
      table.add_write(4096, 10ns);
      table.add_read(4096, !is_streamed ? 3000ns : i % 4 == 0 ? 1ms : 1000ns);
    }
    table.count(k4096);
  }
  CHECK(table.is_streamed(4096));
}

TEST_CASE("who has only read goes on as before", "[runtime][unit]") {
  CopyTable table = first_trials(4096);
  try_both(table, 4096, kApart, Part::kRead);
  CHECK_FALSE(table.is_streamed(4096));
  advance(table, 256 - CopyTable::kFirstPeriod - 2 * CopyTable::kTries, 4096);
  try_both(table, 4096, kApart);
  REQUIRE(table.is_streamed(4096));
  advance(table, 1024 - 256 - 2 * CopyTable::kTries, 4096);
  try_both(table, 4096, kTogether, Part::kRead);
  CHECK(table.is_streamed(4096));
}

TEST_CASE("who has only written wants to see it take less than half", "[runtime][unit]") {
  CopyTable table = first_trials(4096);
  try_both(table, 4096, kApart, Part::kWrite);
  CHECK(table.is_streamed(4096));
  advance(table, 256 - CopyTable::kFirstPeriod - 2 * CopyTable::kTries, 4096);
  try_both(table, 4096, {1000ns, 0ns, 600ns, 0ns}, Part::kWrite);
  CHECK_FALSE(table.is_streamed(4096));
}

TEST_CASE("in broadcasts ranks learn from what they write and what they read", "[runtime][unit]") {
  CopyTable table = first_trials(16384);
  try_both(table, 16384, kApart, Part::kInTurn);
  CHECK(table.is_streamed(16384));
}

TEST_CASE("messages of an exchange that differ in size count each for its own", "[runtime][unit]") {
  CopyTable table;
  const CopyTable::Sizes both = CopyTable::size_of_message(2048) | CopyTable::size_of_message(16384);
  for (std::uint64_t i = 0; i < CopyTable::kFirstPeriod + CopyTable::kTries; ++i) table.count(both);
  CHECK(table.is_streamed(2048));
  CHECK(table.is_streamed(16384));
  CHECK_FALSE(table.is_streamed(4096));
  CHECK(CopyTable::size_of_message(CopyTable::kLeastBytes - 1) == 0);
}
