#include <algorithm>
#include <random>
#include <set>

#include "runtime/negotiation/round_negotiation.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/negotiating_ranks.hpp"

/// The negotiation of ranks that follow a plan, and depart from it.

using namespace runjob::runtime;
using Type = Decision::Type;

namespace {

/// One step in which all ranks submit `names`, each rank in an order of its own.
std::vector<Decision> run_step(Ranks& ranks, std::size_t size, std::vector<std::string> names) {
  for (std::size_t rank = 0; rank < size; ++rank) {
    for (const std::string& name : names) ranks.submit(rank, name);
    std::rotate(names.begin(), names.begin() + std::ssize(names) / 2, names.end());
  }
  return ranks.rounds_until_silent();
}

constexpr std::size_t kBucket = 1u << 20;
const std::vector<std::string> kStep{"a", "b", "c", "d"};

/// Two ranks that follow a plan of kStep, which is one bucket.
Ranks planning() {
  Ranks ranks(2, 1024, 4096, nullptr, kBucket);
  for (int i = 0; i < 3; ++i) run_step(ranks, 2, kStep);
  REQUIRE(ranks.planned() == 0);
  return ranks;
}

}  // namespace

TEST_CASE("a step that repeats is one number, for which a rank holds back what it submits", "[runtime][unit]") {
  Ranks ranks = planning();
  for (int i = 1; i <= 3; ++i) {
    for (const std::size_t rank : {0u, 1u}) {
      for (const char* name : {"d", "a", "b"}) ranks.submit(rank, name);
      CHECK_FALSE(ranks[rank].has_announcements());
      CHECK(ranks[rank].plans().missing() == 1u);
      ranks.submit(rank, "c");
      CHECK_FALSE(ranks[rank].plans().missing());
    }
    CHECK(ranks.round().size() == 4);
    CHECK(ranks.planned() == i);
    CHECK_FALSE(ranks[0].has_announcements());
  }
}

TEST_CASE("a rank that does not wait for the rest of a bucket costs the plan one step", "[runtime][unit]") {
  Ranks ranks = planning();
  for (const std::size_t rank : {0u, 1u}) ranks.submit(rank, "a");
  ranks[0].release();
  CHECK(ranks.round().empty());  // rank 1 holds it back, and is waited for
  ranks[1].release();
  CHECK(ranks.round().size() == 1);
  for (const std::size_t rank : {0u, 1u}) {
    for (const char* name : {"b", "c", "d"}) ranks.submit(rank, name);
    CHECK(ranks[rank].plans().held() == 0);
  }
  CHECK(ranks.round().size() == 3);
  CHECK(ranks.planned() == 0);
  CHECK(run_step(ranks, 2, kStep).size() == 4);
  CHECK(ranks.planned() == 1);
}

TEST_CASE("one rank departs from the plan, the other does not: all is decided, and the plan goes on",
          "[runtime][unit]") {
  Ranks ranks = planning();
  for (const char* name : {"a", "b", "c", "d"}) ranks.submit(0, name);
  for (const char* name : {"a", "b"}) ranks.submit(1, name);
  ranks[1].release();
  CHECK(ranks.round().size() == 2);
  for (const char* name : {"c", "d"}) ranks.submit(1, name);
  CHECK(ranks.round().size() == 2);
  run_step(ranks, 2, kStep);
  CHECK(ranks.planned() == 1);
}

TEST_CASE("operations between the steps of a plan leave it alone", "[runtime][unit]") {
  Ranks ranks = planning();
  for (int i = 1; i <= 3; ++i) {
    CHECK(run_step(ranks, 2, {"now and then"}).size() == 1);
    CHECK(run_step(ranks, 2, kStep).size() == 4);
    CHECK(ranks.planned() == i);
  }
}

TEST_CASE("a bucket that is never said by all at once is given up, and tried again later", "[runtime][unit]") {
  Ranks ranks = planning();
  const auto wait_for_half = [&] {
    for (const auto& half : {std::vector<std::string>{"a", "b"}, std::vector<std::string>{"c", "d"}}) {
      for (const std::size_t rank : {0u, 1u}) {
        for (const std::string& name : half) ranks.submit(rank, name);
      }
      CHECK(ranks.rounds_until_silent().size() == 2);
    }
  };
  for (int i = 0; i < StepPlan::kMostFailures; ++i) wait_for_half();
  CHECK(ranks.planned() == 0);
  ranks.submit(0, "a");
  CHECK(ranks[0].has_announcements());  // not held back any more
  ranks.submit(1, "a");
  CHECK(ranks.rounds_until_silent().size() == 1);
  CHECK(run_step(ranks, 2, {"b", "c", "d"}).size() == 3);
  for (int i = 0; i < 8; ++i) run_step(ranks, 2, kStep);
  CHECK(ranks.planned() > 0);
}

TEST_CASE("a join, a change and a forgotten operation end the plan", "[runtime][unit]") {
  Ranks ranks = planning();
  std::vector<std::string> step = kStep;
  SECTION("a join") {
    ranks.submit(1, "a");
    ranks.submit(0, "<join>", {.kind = Kind::kJoin});
    for (const Decision& decision : ranks.rounds_until_silent()) CHECK(decision.for_joined);
    ranks.submit(1, "<join>", {.kind = Kind::kJoin});
    CHECK(ranks.rounds_until_silent().size() == 1);
  }
  SECTION("a change by one rank, of what the other one holds back") {
    ranks.submit(0, "a");
    ranks.submit(1, "a", gather(2));
    const auto decisions = ranks.rounds_until_silent();
    REQUIRE(decisions.size() == 1);
    CHECK(decisions[0].type == Type::kReject);
    run_step(ranks, 2, {"a"});  // new again
  }
  ranks.submit(0, "a");
  CHECK(ranks[0].plans().held() == 0);
  ranks.submit(1, "a");
  ranks.rounds_until_silent();
  for (int i = 0; i < 6; ++i) CHECK(run_step(ranks, 2, kStep).size() == 4);
  CHECK(ranks.planned() > 0);
}

TEST_CASE("a plan is as small as the cache, or there is none", "[runtime][unit]") {
  Ranks ranks(2, /*capacity=*/4, 4096, nullptr, kBucket);
  for (int i = 0; i < 5; ++i) run_step(ranks, 2, kStep);
  const int planned = ranks.planned();
  CHECK(planned > 0);
  for (const std::size_t rank : {0u, 1u}) ranks.submit(rank, "another one, for which one of the plan is forgotten");
  ranks.rounds_until_silent();
  for (int i = 0; i < 5; ++i) CHECK(run_step(ranks, 2, {"a", "b", "c", "d", "e"}).size() == 5);
  CHECK(ranks.planned() == planned);
}

TEST_CASE("a bucket of another plan is refused", "[runtime][unit]") {
  Ranks ranks = planning();
  for (const char* name : {"a", "b", "c", "d"}) ranks.submit(0, name);
  const auto word = ranks[0].take_bucket();
  REQUIRE(word);
  CHECK_THROWS_WITH(ranks[1].receive_bucket(0, *word ^ 1), ContainsSubstring("a plan that is not this one's"));
}

// Steps that repeat, from which all ranks or some depart now and then: by another order, by not waiting for the rest of
// a bucket, by an operation that is left out, changed or new, and by a join. Each operation is decided once, and
// rightly.
TEST_CASE("random departures from a plan change no decision", "[runtime][unit]") {
  int planned = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
    const int size = 1 + below(4);
    const std::size_t bucket_bytes = below(2) == 0 ? kBucket : 24;
    Ranks ranks(size, below(4) == 0 ? 6 : 1024, below(4) == 0 ? 24 : 4096, nullptr, bucket_bytes);
    INFO("seed " << seed << ", size " << size);
    std::vector<std::string> names;
    for (int step = 0; step < 60; ++step) {
      if (step % 20 == 0) {
        names.clear();
        for (int number = 0; number < 1 + below(8); ++number) names.push_back("t" + std::to_string(number));
      }
      std::vector<std::string> now = names;
      if (below(8) == 0) now.erase(now.begin() + below(static_cast<int>(now.size())));
      if (below(8) == 0) now.push_back("extra" + std::to_string(below(3)));
      const std::string changed = below(10) == 0 && !now.empty() ? now[0] : "";
      std::multiset<std::string> decided, expected(now.begin(), now.end());
      const auto note = [&](const std::vector<Decision>& decisions) {
        for (const Decision& decision : decisions) {
          decided.insert(decision.name);
          CHECK((decision.type == Type::kReject) == (decision.name == changed && size > 1));
        }
      };
      std::vector<std::vector<std::string>> left(static_cast<std::size_t>(size), now);
      for (auto& order : left) {
        if (below(3) == 0) std::shuffle(order.begin(), order.end(), random);
      }
      const auto is_left = [](const auto& order) { return !order.empty(); };
      const bool is_wild = below(4) == 0;
      while (std::any_of(left.begin(), left.end(), is_left)) {
        for (std::size_t rank = 0; rank < left.size(); ++rank) {
          for (int i = is_wild ? below(4) : 100; i > 0 && !left[rank].empty(); --i) {
            const std::string name = left[rank].front();
            left[rank].erase(left[rank].begin());
            Signature signature = kSum;
            if (name == changed && rank == 0) signature.dtype = DType::kInt32;
            ranks.submit(rank, name, signature);
          }
          if (is_wild && below(4) == 0) ranks[rank].release();
        }
        note(ranks.round());
      }
      note(ranks.rounds_until_silent());
      REQUIRE(decided == expected);
      if (below(12) == 0) {
        for (int rank = 0; rank < size; ++rank) {
          ranks.submit(static_cast<std::size_t>(rank), "<join>", {.kind = Kind::kJoin});
          if (below(2) == 0) ranks.round();
        }
        ranks.rounds_until_silent();
      }
      for (int rank = 0; rank < size; ++rank) REQUIRE_FALSE(ranks[0].is_busy(rank));
    }
    planned += ranks.planned();
  }
  CHECK(planned > 150);
}
