#include "runtime/life/stall_verdict.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

const Members kMembers{"a", "a", "b", "b"};
const Status kStatus(Errc::kTimeout, "x has waited 4 s for rank 1 on a");

Wait in(const std::string& operation) {
  return {.operation = operation, .ranks = {}};
}

Wait in_set(const std::string& operation, int set, std::vector<std::int64_t> ranks) {
  return {.operation = operation, .process_set = set, .ranks = std::move(ranks)};
}

StallVerdict judge(const std::vector<std::vector<Wait>>& waits, int rank = 0, int late = 1) {
  return judge_stall({kStatus, rank, late}, waits, kMembers);
}

constexpr char kEnd[] =
    ": the ranks take different steps, or the same ones in another order; see join(). Waits may not be longer than "
    "--stall-check-shutdown-time-seconds (RUNJOB_STALL_SHUTDOWN_TIME_SECONDS)";

}  // namespace

TEST_CASE("a rank that waits in no operation is late", "[runtime][unit]") {
  const StallVerdict verdict = judge({{in("x")}, {}, {in("x")}, {in("x")}});
  CHECK(verdict.late == 1);
  CHECK_FALSE(verdict.is_mutual);
  CHECK(verdict.status.message() == kStatus.message());
}

TEST_CASE("ranks that wait for each other are all named, and none is late, whichever reports it", "[runtime][unit]") {
  const std::vector<std::vector<Wait>> waits{{in("grad")}, {in("val")}, {in("grad")}, {in("grad")}};
  const auto [reporter, late] = GENERATE(std::pair(0, 1), std::pair(1, 0));
  const StallVerdict verdict = judge(waits, reporter, late);
  CHECK(verdict.is_mutual);
  CHECK(verdict.late == -1);
  CHECK(verdict.status.code() == Errc::kTimeout);
  CHECK(verdict.status.message() ==
        std::string("ranks 0 (a), 2 (b), 3 (b) wait in grad and rank 1 on a in val") + kEnd);
}

TEST_CASE("a circle of more than two ranks, and a rank that waits for one of them", "[runtime][unit]") {
  const StallVerdict verdict =
      judge({{in_set("x", 1, {0, 1})}, {in_set("y", 2, {1, 2})}, {in_set("z", 3, {0, 2})}, {in_set("w", 4, {0, 3})}},
            /*rank=*/3, /*late=*/0);
  CHECK(verdict.is_mutual);
  CHECK(verdict.status.message() ==
        std::string("rank 0 on a waits in x, rank 1 on a in y and rank 2 on b in z") + kEnd);
}

TEST_CASE("ranks of different process sets wait for each other", "[runtime][unit]") {
  const StallVerdict verdict = judge({{in_set("x of process set 1", 1, {0, 1})}, {in("y")}, {in("y")}, {in("y")}});
  CHECK(verdict.is_mutual);
  CHECK(verdict.status.message() == std::string("rank 0 on a waits in x of process set 1 and rank 1 on a in y") + kEnd);
}

TEST_CASE("the end of a chain of waits is late, and the chain is told", "[runtime][unit]") {
  const StallVerdict verdict =
      judge({{in_set("x", 1, {0, 1})}, {in_set("y", 2, {1, 2})}, {in_set("z", 3, {2, 3})}, {}});
  CHECK(verdict.late == 3);
  CHECK_FALSE(verdict.is_mutual);
  CHECK(verdict.status.message() == kStatus.message() + "; rank 1 on a waits itself in y for rank 2 on b" +
                                        "; rank 2 on b waits itself in z for rank 3 on b");
}

TEST_CASE("ranks that wait for each other come before one that is late", "[runtime][unit]") {
  CHECK(judge({{in("x")}, {in("y")}, {}, {in("x")}}).is_mutual);
}

TEST_CASE("a rank that has joined is missing in no operation", "[runtime][unit]") {
  Wait join = in("<join>");
  join.is_join = true;
  SECTION("another one is late") {
    const StallVerdict verdict = judge({{in("x")}, {join}, {}, {in("x")}});
    CHECK(verdict.late == 2);
    CHECK_FALSE(verdict.is_mutual);
  }
  SECTION("others wait for each other") {
    const StallVerdict verdict = judge({{in("x")}, {join}, {in("y")}, {in("x")}});
    CHECK(verdict.is_mutual);
    CHECK(verdict.status.message() == std::string("ranks 0 (a), 3 (b) wait in x and rank 2 on b in y") + kEnd);
  }
}

TEST_CASE("of several operations the oldest in which ranks wait for each other is named", "[runtime][unit]") {
  const StallVerdict verdict = judge({{in("x"), in("y")}, {in("x"), in("z")}, {in("x"), in("z")}, {in("x"), in("z")}});
  CHECK(verdict.status.message() == std::string("rank 0 on a waits in y and ranks 1 (a), 2 (b), 3 (b) in z") + kEnd);
}

TEST_CASE("an operation that was completed meanwhile leaves what was reported", "[runtime][unit]") {
  const StallVerdict verdict = judge({{}, {}, {}, {}});
  CHECK(verdict.late == 1);
  CHECK(verdict.status.message() == kStatus.message());
}

TEST_CASE("many ranks and operations are counted", "[runtime][unit]") {
  const Members members(std::vector<std::string>(40, "a"));
  std::vector<std::vector<Wait>> waits;
  for (int rank = 0; rank < 40; ++rank) waits.push_back({in("x" + std::to_string(std::min(rank, 20)))});
  const std::string text = judge_stall({kStatus, 0, 1}, waits, members).status.message();
  CHECK_THAT(text, ContainsSubstring("rank 0 on a waits in x0, rank 1 on a in x1, "));
  CHECK_THAT(text, ContainsSubstring("rank 7 on a in x7 and others in 13 more operations: "));
  waits.assign(40, {in("x")});
  waits[0] = {in("y")};
  CHECK_THAT(judge_stall({kStatus, 0, 1}, waits, members).status.message(),
             ContainsSubstring(
                 "rank 0 on a waits in y and ranks 1 (a), 2 (a), 3 (a), 4 (a), 5 (a), 6 (a), 7 (a), 8 (a) and 31 "
                 "more in x: "));
}
