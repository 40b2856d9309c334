#include "runtime/collectives/hierarchical/rounds/attendance.hpp"

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/rounds/rounds_hosts.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;

namespace {

bool all_are_busy(int) {
  return true;
}

Attendance attendance_of(RoundsRank& rank) {
  return Attendance(rank.topology, rank.local.group, rank.board);
}

std::string bytes(std::initializer_list<char> values) {
  return std::string(values);
}

}  // namespace

TEST_CASE("attendance: a rank that has given its message is known, whatever comes later", "[runtime][unit]") {
  RoundsHosts ranks({0, 0, 1, 1});
  const Attendance attendance = attendance_of(ranks[0]);
  CHECK(attendance.late_rank(3, all_are_busy) == 0);
  ranks[0].board.given(0).store(3);
  CHECK(attendance.state_here(3) == bytes({1, 0}));
  CHECK(attendance.late_rank(3, [](int rank) { return rank != 1; }) == 2);

  attendance.note_state(1, 3, bytes({1, 0}));
  CHECK(attendance.has_given(2, 3));
  CHECK_FALSE(attendance.has_given(3, 3));
  CHECK(attendance.late_rank(3, [](int rank) { return rank != 1; }) == 3);
  attendance.note_state(1, 2, bytes({1, 1}));  // an older answer
  CHECK(attendance.has_given(2, 3));
  CHECK(attendance.has_given(3, 2));
  CHECK_FALSE(attendance.has_given(3, 3));
  CHECK(attendance.late_rank(2, [](int rank) { return rank != 1; }) == -1);
  CHECK(attendance.late_rank(3, [](int) { return false; }) == -1);
}

TEST_CASE("attendance: other hosts see that a rank moves bytes", "[runtime][unit]") {
  RoundsHosts ranks({0, 0, 1, 1});
  const Attendance here = attendance_of(ranks[0]), there = attendance_of(ranks[2]);
  const std::string still = here.state_here(3);
  const std::uint64_t none = there.moves();
  there.note_state(0, 3, still);
  CHECK(there.moves() == none);
  ranks[0].board.moves(1).store(1000);
  CHECK(here.moves() == 1000);
  const std::string moving = here.state_here(3);
  CHECK(moving[0] == still[0]);
  CHECK(moving[1] != still[1]);
  there.note_state(0, 3, moving);
  CHECK(there.moves() != none);
  CHECK_FALSE(there.has_given(1, 3));
}

TEST_CASE("attendance: a rank of another host that leaves is missed only in later rounds", "[runtime][unit]") {
  RoundsHosts ranks({0, 0, 1, 1});
  const Attendance attendance = attendance_of(ranks[0]);
  CHECK_FALSE(attendance.has_departures());
  attendance.note_left(3, 5);
  CHECK(attendance.has_departures());
  CHECK(attendance.departed_rank(5) == -1);
  CHECK(attendance.departed_rank(6) == 3);
  CHECK_FALSE(attendance.has_leader_left(1));
  attendance.note_left(3, 2);  // the first announcement counts
  CHECK(attendance.departed_rank(5) == -1);
  attendance.note_left(2, 0);
  CHECK(attendance.has_leader_left(1));
  CHECK(attendance.departed_rank(1) == 2);
}

TEST_CASE("attendance: a rank of this host that leaves is missed unless it has given its message", "[runtime][unit]") {
  RoundsHosts ranks({0, 0, 1});
  const Attendance attendance = attendance_of(ranks[0]);
  ranks[1].board.given(1).store(4);
  ranks[1].local.rounds.leave();
  CHECK_FALSE(attendance.has_departures());
  CHECK(attendance.departed_rank(4) == -1);
  CHECK(attendance.departed_rank(5) == 1);
}

TEST_CASE("attendance: the last round that another host has begun never goes back", "[runtime][unit]") {
  RoundsHosts ranks({0, 1});
  const Attendance attendance = attendance_of(ranks[0]);
  attendance.note_begun(5);
  attendance.note_begun(4);
  CHECK(ranks[0].board.begun().load() == 5);
}

TEST_CASE("attendance: an announcement that no host sends is an error", "[runtime][unit]") {
  RoundsHosts ranks({0, 0, 1, 1});
  const Attendance attendance = attendance_of(ranks[0]);
  const int which = GENERATE(0, 1, 2, 3);
  try {
    if (which == 0) attendance.note_state(1, 1, bytes({1}));
    if (which == 1) attendance.note_state(1, 1, bytes({1, 1, 1}));
    if (which == 2) attendance.note_left(-1, 1);
    if (which == 3) attendance.note_left(4, 1);
    FAIL("taken");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kProtocol);
  }
  CHECK_FALSE(attendance.has_departures());
}
