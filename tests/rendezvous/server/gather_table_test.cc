#include "rendezvous/server/gather_table.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"

using namespace runjob::rendezvous;
using namespace std::chrono_literals;
using Kind = GatherTable::Kind;

namespace {

constexpr auto kStart = GatherTable::TimePoint() + 1h;

struct Table {
  explicit Table(int size) : roster(std::vector<std::string>(static_cast<std::size_t>(size), "a"), 30s) {}

  /// Rank `rank` comes with its rank as index, waiting 10 s.
  Answers arrive(int rank, const std::string& blob, const std::string& call = "", int count = 0) {
    Arrival arrival;
    arrival.rank = rank;
    arrival.index = rank;
    arrival.count = count == 0 ? roster.size() : count;
    arrival.blob = blob;
    arrival.call = call;
    arrival.deadline = kStart + 10s;
    return gathers.arrive(Kind::kGather, "x", std::move(arrival), kStart);
  }

  Roster roster;
  StoredBytes stored;
  GatherTable gathers{roster, stored};
};

}  // namespace

TEST_CASE("the last to come completes a gather, in the order of the indices", "[unit]") {
  Table table(3);
  CHECK(table.arrive(2, "c").empty());
  CHECK(table.arrive(0, "a").empty());
  CHECK(table.gathers.next_deadline() == kStart + 10s);
  const Answers answers = table.arrive(1, "b");
  REQUIRE(answers.size() == 3);
  CHECK(decode_blobs(answers[0].response.body) == std::vector<std::string>{"a", "b", "c"});
  CHECK(&answers[0].response.body.str() == &answers[2].response.body.str());
  CHECK(table.stored.used() == 0);
  CHECK(table.gathers.size() == 0);
  CHECK(table.gathers.next_deadline() == GatherTable::TimePoint::max());
}

TEST_CASE("a gather and a barrier of one name are two things", "[unit]") {
  Table table(2);
  CHECK(table.arrive(0, "a").empty());
  Arrival arrival;
  arrival.rank = arrival.index = 1;
  arrival.count = 2;
  CHECK(table.gathers.arrive(Kind::kBarrier, "x", arrival, kStart).empty());
  CHECK(table.gathers.size() == 2);
}

TEST_CASE("two callers with one index, or different counts, are refused by name", "[unit]") {
  Table table(3);
  CHECK(table.arrive(1, "a").empty());
  Answers twice = table.arrive(1, "a");
  REQUIRE(twice.size() == 1);
  CHECK(twice[0].response.status == 409);
  CHECK(error_text(twice[0].response.body) == "gather 'x': index 1 is given twice, by rank 1 and by rank 1");
  const Answers other = table.arrive(0, "a", "", 2);
  REQUIRE(other.size() == 1);
  CHECK(other[0].response.status == 409);
  CHECK(error_text(other[0].response.body) == "gather 'x': rank 0 gives the count 2, rank 1 gave 3");
}

TEST_CASE("a call that is sent again while it waits counts once", "[unit]") {
  Table table(2);
  CHECK(table.arrive(0, "a", "c1").empty());
  const Answers superseded = table.arrive(0, "a", "c1");
  REQUIRE(superseded.size() == 1);
  CHECK(superseded[0].response.status == 409);
  CHECK(error_text(superseded[0].response.body) == "gather 'x': asked again on another connection");
  CHECK(table.arrive(1, "b", "d1").size() == 2);
}

TEST_CASE("a call that is sent again after its answer was lost gets the same answer", "[unit]") {
  Table table(2);
  CHECK(table.arrive(0, "a", "c1").empty());
  const Answers answers = table.arrive(1, "b", "d1");
  REQUIRE(answers.size() == 2);
  const Answers again = table.arrive(0, "a", "c1");
  REQUIRE(again.size() == 1);
  CHECK(again[0].response.status == 200);
  CHECK(again[0].response.body == answers[0].response.body);
  CHECK(table.gathers.size() == 0);
  CHECK(table.arrive(0, "a", "c2").empty());  // the next round
}

TEST_CASE("an answer too large to keep is said to be lost instead of mixing two rounds", "[unit]") {
  Table table(3);
  const std::string large(kMaxBodyBytes, 'x');
  CHECK(table.arrive(0, large, "c1").empty());
  CHECK(table.arrive(1, large, "d1").empty());
  CHECK(table.arrive(2, large, "e1").size() == 3);
  int lost = 0;
  const std::pair<int, const char*> calls[] = {{0, "c1"}, {1, "d1"}, {2, "e1"}};
  for (const auto& [rank, call] : calls) {
    const Answers again = table.arrive(rank, large, call);
    REQUIRE(again.size() == 1);
    if (again[0].response.status == 200) continue;
    ++lost;
    CHECK(again[0].response.status == 409);
    CHECK_THAT(error_text(again[0].response.body),
               ContainsSubstring("was answered on a connection that broke, and the answer is no longer kept"));
  }
  CHECK(lost > 0);
}

TEST_CASE("when one wait runs out the gather ends for all and its name is free", "[unit]") {
  Table table(3);
  CHECK(table.arrive(0, "a").empty());
  CHECK(table.arrive(2, "c").empty());
  CHECK(table.gathers.expire(kStart + 9999ms).empty());
  table.roster.started(1, 12, kStart - 10s);
  const Answers answers = table.gathers.expire(kStart + 10s);
  REQUIRE(answers.size() == 2);
  CHECK(answers[1].response.status == 408);
  CHECK(error_text(answers[1].response.body) ==
        "gather 'x' ran out of time after 10 s: rank 1 on a has not called init() for 20 s (pid 12)");
  CHECK(table.stored.used() == 0);
  CHECK(table.arrive(0, "a").empty());
  CHECK(table.arrive(1, "b").empty());
  CHECK(table.arrive(2, "c").size() == 3);
}

TEST_CASE("a missing index is not taken for a rank when only some take part", "[unit]") {
  Table table(3);
  CHECK(table.arrive(0, "a", "", 2).empty());
  const Answers answers = table.gathers.expire(kStart + 10s);
  REQUIRE(answers.size() == 1);
  CHECK(error_text(answers[0].response.body) ==
        "gather 'x' ran out of time after 10 s: index 1 of 2 has not reached gather 'x'");
}

TEST_CASE("what all blobs need is bounded", "[unit]") {
  Table table(32);
  const std::string large(kMaxBodyBytes, 'x');
  Answers answers;
  int rank = 0;
  while (answers.empty() && rank < 32) answers = table.arrive(rank++, large);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].response.status == 503);
  CHECK(error_text(answers[0].response.body) == "gather 'x': the rendezvous holds its limit of 268435456 bytes");
  CHECK(table.stored.used() <= kMaxStoredBytes);
  CHECK(table.gathers.close(error_response(410, "over")).size() == static_cast<std::size_t>(rank - 1));
  CHECK(table.stored.used() == 0);
}

TEST_CASE("the status of a gather says who is missing", "[unit]") {
  Table table(2);
  CHECK(table.arrive(0, "a").empty());
  const nlohmann::json list = table.gathers.to_json(kStart + 2s);
  REQUIRE(list.size() == 1);
  CHECK(list[0]["what"] == "gather 'x'");
  CHECK(list[0]["arrived"] == 1);
  CHECK(list[0]["count"] == 2);
  CHECK(list[0]["since_seconds"] == 2.0);
  CHECK(list[0]["missing"] == "rank 1 on a: process not started");
}
