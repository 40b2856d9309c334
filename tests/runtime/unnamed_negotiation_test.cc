#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "runtime/negotiation/round_negotiation.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/negotiating_ranks.hpp"

/// The negotiation of operations without a name.

using namespace runjob::runtime;
using Type = Decision::Type;

namespace {

constexpr std::size_t kBucket = 1u << 20;

Signature sum_of(std::int64_t elements) {
  return {.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .shape = {elements}};
}

std::vector<std::string> texts(const std::vector<Decision>& decisions) {
  std::vector<std::string> all;
  for (const Decision& decision : decisions) {
    all.push_back(name_text(decision.name));
    if (decision.type == Type::kReject) all.back() += " rejected";
  }
  return all;
}

using Texts = std::vector<std::string>;

/// A step of these operations on all ranks, each of the next one when all have submitted the one before.
std::vector<Decision> run_step(Ranks& ranks, std::size_t size, const std::vector<std::int64_t>& sums) {
  for (std::size_t rank = 0; rank < size; ++rank) {
    for (const std::int64_t sum : sums) ranks.submit_unnamed(rank, sum_of(sum));
  }
  return ranks.rounds_until_silent();
}

}  // namespace

TEST_CASE("operations without a name match in their order, whenever the ranks submit them", "[runtime][unit]") {
  Ranks ranks(2);
  for (int i = 0; i < 3; ++i) {
    CHECK(name_text(ranks.submit_unnamed(0)) == "number " + std::to_string(3 * i + 1));
    ranks.submit_unnamed(0);
    CHECK(ranks.round().empty());
    ranks.submit_unnamed(0, sum_of(4));
    ranks.submit_unnamed(1);
    CHECK(texts(ranks.round()) == Texts{"number " + std::to_string(3 * i + 1)});
    CHECK(ranks[0].missing(unnamed_operation(0, static_cast<std::uint64_t>(3 * i + 2))) == std::vector<int>{1});
    CHECK(ranks[0].is_busy(0));
    CHECK_FALSE(ranks[0].is_busy(1));
    ranks.submit_unnamed(1);
    ranks.submit_unnamed(1, sum_of(4));
    CHECK(ranks.round().size() == 2);
    CHECK(ranks[0].missing(unnamed_operation(0, static_cast<std::uint64_t>(3 * i + 2))).empty());
    CHECK_FALSE(ranks[0].is_busy(0));
  }
  CHECK(name_text(ranks[1].last()[0]) == "number 9");
}

TEST_CASE("each process set has an order of its own, and so have names", "[runtime][unit]") {
  Ranks ranks(2);
  Signature of_set = kSum;
  of_set.process_set = 3;
  for (int i = 0; i < 3; ++i) {
    ranks.submit_unnamed(0);
    ranks.submit_unnamed(0, of_set);
    ranks.submit(0, "x");
    ranks.submit(1, "x");
    ranks.submit_unnamed(1, of_set);
    ranks.submit_unnamed(1);
    const auto decisions = ranks.rounds_until_silent();
    REQUIRE(decisions.size() == 3);
    for (const Decision& decision : decisions) CHECK(decision.type == Type::kExecute);
  }
}

TEST_CASE("a disagreement is found when the last rank has submitted the operation", "[runtime][unit]") {
  Ranks ranks(3);
  const int before = GENERATE(0, 4);
  const bool in_two_rounds = GENERATE(false, true);
  for (int i = 0; i < before; ++i) run_step(ranks, 3, {2, 3});
  Signature first = sum_of(2), second = sum_of(3);
  SECTION("on the shape") {}
  SECTION("on the kind, of a known one and a new one") {
    second = gather(2);
  }
  SECTION("on the dtype") {
    first.dtype = DType::kInt32;
    second = sum_of(2);
  }
  SECTION("on the root") {
    first = second = {.kind = Kind::kBroadcast, .dtype = DType::kFloat32, .shape = {2}};
    second.root = 2;
  }
  ranks.submit_unnamed(0, first);
  ranks.submit_unnamed(1, second);
  if (in_two_rounds) CHECK(ranks.round().empty());
  ranks.submit_unnamed(2, first);
  ranks.submit_unnamed(1, first);  // the next one
  const auto decisions = ranks.round();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].type == Type::kReject);
  CHECK_THAT(decisions[0].status.message(), ContainsSubstring("the ranks disagree on the "));
  CHECK_THAT(decisions[0].status.message(), ContainsSubstring(" on ranks 0 (a), 2 (a); "));
  CHECK_THAT(decisions[0].status.message(), ContainsSubstring(" on rank 1 (a)"));
  CHECK_THAT(decisions[0].status.message(), ContainsSubstring(name_text(decisions[0].name) + ": "));
  for (const std::size_t rank : {0u, 2u}) ranks.submit_unnamed(rank, first);
  CHECK(ranks.round()[0].type == Type::kExecute);
  CHECK(run_step(ranks, 3, {2, 3}).size() == 2);
}

TEST_CASE("rows of an allgather may differ and change", "[runtime][unit]") {
  Ranks ranks(2);
  for (const std::int64_t rows : {1, 1, 5, 5, 0}) {
    for (int twice = 0; twice < 2; ++twice) {
      ranks.submit_unnamed(0, gather(rows));
      ranks.submit_unnamed(1, gather(2));
    }
    const auto decisions = ranks.rounds_until_silent();
    REQUIRE(decisions.size() == 2);
    for (const Decision& decision : decisions) CHECK(decision.first_extents == std::vector<std::int64_t>{rows, 2});
  }
}

TEST_CASE("a step of operations without a name is planned as one with names, also if it differs now and then",
          "[runtime][unit]") {
  Ranks ranks(2, 1024, 4096, nullptr, kBucket);
  for (int i = 0; i < 8; ++i) run_step(ranks, 2, {8, 5, 5, 5, 9});
  int planned = ranks.planned();
  for (int i = 0; i < 20; ++i) {
    if (i % 5 == 4) CHECK(texts(run_step(ranks, 2, {1})).size() == 1);
    CHECK(run_step(ranks, 2, {8, 5, 5, 5, 9}).size() == 5);
    CHECK(ranks.planned() == ++planned);
  }
}

TEST_CASE("what looks planned, but comes in another order on one rank, is a disagreement", "[runtime][unit]") {
  Ranks ranks(2, 1024, 4096, nullptr, kBucket);
  for (int i = 0; i < 6; ++i) run_step(ranks, 2, {8, 5, 9});
  for (const std::int64_t sum : {8, 5, 9}) ranks.submit_unnamed(0, sum_of(sum));
  for (const std::int64_t sum : {8, 9, 5}) ranks.submit_unnamed(1, sum_of(sum));
  CHECK(texts(ranks.rounds_until_silent()) == Texts{"number 19", "number 20 rejected", "number 21 rejected"});
  for (int i = 0; i < 3; ++i) CHECK(run_step(ranks, 2, {8, 5, 9}).size() == 3);
}

TEST_CASE("a rank that has joined does not count the operations of the others", "[runtime][unit]") {
  Ranks ranks(2, 1024, 4096, nullptr, kBucket);
  for (int i = 0; i < 3; ++i) run_step(ranks, 2, {8, 5});
  ranks.submit_unnamed(1, sum_of(8));
  ranks.submit(0, kJoinName, {.kind = Kind::kJoin});
  for (const std::int64_t sum : {5, 8, 5}) ranks.submit_unnamed(1, sum_of(sum));
  std::size_t done = 0;
  for (int round = 0; round < 4; ++round) {
    for (const std::size_t rank : {0u, 1u}) ranks[rank].release();
    std::vector<std::string> messages;
    for (const std::size_t rank : {0u, 1u}) messages.push_back(ranks[rank].take_bytes(4096));
    for (const std::size_t listener : {0u, 1u}) {
      for (const std::size_t rank : {0u, 1u}) ranks[listener].receive(static_cast<int>(rank), messages[rank]);
      for (const Decision& decision : ranks[listener].take()) {
        CHECK(decision.for_joined);
        const bool is_numbered = decision.name == unnamed_operation(0, 7 + done / 2);
        if (listener == 1) CHECK(decision.name == unnamed_operation(0, 7 + done));
        if (listener == 0) CHECK_FALSE(is_numbered);
        if (listener == 1) ++done;
      }
    }
  }
  CHECK(done == 4);
  ranks.submit(1, kJoinName, {.kind = Kind::kJoin});
  CHECK(ranks.rounds_until_silent().size() == 1);
  ranks.submit_unnamed(0, sum_of(8));
  ranks.submit_unnamed(1, sum_of(8));
  std::string message0 = ranks[0].take_bytes(4096), message1 = ranks[1].take_bytes(4096);
  for (const std::size_t listener : {0u, 1u}) {
    ranks[listener].receive(0, message0);
    ranks[listener].receive(1, message1);
    const auto decisions = ranks[listener].take();
    REQUIRE(decisions.size() == 1);
    CHECK(decisions[0].type == Type::kExecute);
    CHECK(decisions[0].name == unnamed_operation(0, listener == 0 ? 7 : 11));
  }
}

// Steps of operations with and without names, which repeat and differ now and then, and which the ranks submit in
// bursts; sometimes a rank describes one differently. All are decided once, in order, and rightly.
TEST_CASE("random operations without names are matched in their order", "[runtime][unit]") {
  int planned = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
    const int size = 1 + below(4);
    Ranks ranks(size, below(4) == 0 ? 6 : 1024, below(4) == 0 ? 24 : 4096, nullptr, below(2) == 0 ? kBucket : 24);
    INFO("seed " << seed << ", size " << size);
    std::vector<int> usual;
    std::uint64_t number = 0;
    for (int step = 0; step < 40; ++step) {
      if (step % 20 == 0) {
        usual.clear();
        for (int i = 0; i < 1 + below(8); ++i) usual.push_back(below(4));
      }
      std::vector<int> now = usual;
      if (below(8) == 0) now.erase(now.begin() + below(static_cast<int>(now.size())));
      if (below(8) == 0) now.insert(now.begin() + below(static_cast<int>(now.size()) + 1), 4);
      const std::size_t changed = below(10) == 0 ? static_cast<std::size_t>(below(8)) : SIZE_MAX;
      const int changing = below(size);
      const bool has_named = below(2) == 0;
      std::set<std::uint64_t> wrong;
      if (changed < now.size() && size > 1) wrong.insert(number + changed + 1);
      std::vector<std::size_t> next(static_cast<std::size_t>(size), 0);
      std::uint64_t decided = number;
      int named = 0;
      const auto note = [&](const std::vector<Decision>& decisions) {
        std::map<std::uint64_t, Type> found;
        for (const Decision& decision : decisions) {
          if (!is_unnamed(decision.name)) {
            ++named;
            continue;
          }
          CHECK(found.emplace(std::stoull(decision.name.substr(3)), decision.type).second);
        }
        for (const auto& [which, type] : found) {
          CHECK(which == ++decided);
          CHECK((type == Type::kReject) == wrong.contains(which));
        }
      };
      const bool is_wild = below(3) == 0;
      while (std::any_of(next.begin(), next.end(), [&](std::size_t each) { return each < now.size(); })) {
        for (std::size_t rank = 0; rank < next.size(); ++rank) {
          for (int i = is_wild ? below(4) : 100; i > 0 && next[rank] < now.size(); --i) {
            const std::size_t index = next[rank]++;
            if (index == 0 && has_named) ranks.submit(rank, "named");
            Signature signature =
                now[index] == 3 ? gather(static_cast<std::int64_t>(rank) + 1) : sum_of(now[index] + 1);
            if (index == changed && static_cast<int>(rank) == changing) signature.dtype = DType::kInt32;
            ranks.submit_unnamed(rank, signature);
          }
          if (below(10) == 0) ranks[rank].release();
        }
        if (below(2) == 0) note(ranks.round());
      }
      note(ranks.rounds_until_silent());
      number += now.size();
      CHECK(decided == number);
      CHECK(named == (has_named && !now.empty() ? 1 : 0));
      for (int rank = 0; rank < size; ++rank) CHECK_FALSE(ranks[0].is_busy(rank));
    }
    planned += ranks.planned();
  }
  CHECK(planned > 40);
}
