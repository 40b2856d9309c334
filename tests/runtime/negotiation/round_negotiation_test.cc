#include "runtime/negotiation/round_negotiation.hpp"

#include <map>
#include <random>
#include <set>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/negotiating_ranks.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using Type = Decision::Type;

TEST_CASE("rounds decide what all ranks have said, whenever they said it", "[runtime][unit]") {
  Ranks ranks(3);
  ranks.submit(2, "x");
  CHECK(ranks.round().empty());
  ranks.submit(0, "x");
  ranks.submit(1, "y");
  CHECK(ranks.round().empty());
  ranks.submit(1, "x");
  const auto decisions = ranks.round();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].name == "x");
  CHECK(decisions[0].type == Type::kExecute);
}

TEST_CASE("what was agreed on once is a number from then on, as long as nobody changes it", "[runtime][unit]") {
  Ranks ranks(2);
  for (const std::size_t rank : {0u, 1u}) ranks.submit(rank, "x");
  REQUIRE(ranks.round().size() == 1);
  for (const std::size_t rank : {0u, 1u}) ranks.submit(rank, "x");
  REQUIRE(ranks.round().size() == 1);
  CHECK(ranks.bytes() == 4);

  SECTION("by one rank alone: a disagreement, told on both, after which it is new again") {
    Signature other = kSum;
    other.dtype = DType::kInt32;
    const bool first_changes = GENERATE(false, true);
    ranks.submit(0, "x", first_changes ? other : kSum);
    if (GENERATE(false, true)) CHECK(ranks.round().empty());
    ranks.submit(1, "x", first_changes ? kSum : other);
    const auto decisions = ranks.round();
    REQUIRE(decisions.size() == 1);
    CHECK(decisions[0].type == Type::kReject);
    CHECK_THAT(decisions[0].status.message(), ContainsSubstring("the ranks disagree on the dtype: "));
    CHECK_FALSE(ranks[0].cache().find("x", kSum));
  }
  SECTION("by all: the new one is known then") {
    Signature other = kSum;
    other.shape = {7};
    for (const std::size_t rank : {0u, 1u}) ranks.submit(rank, "x", other);
    CHECK(ranks.round()[0].type == Type::kExecute);
    CHECK(ranks[1].cache().find("x", other));
    CHECK_FALSE(ranks[1].cache().find("x", kSum));
  }
}

TEST_CASE("an allgather is known with the extents that each rank had", "[runtime][unit]") {
  Ranks ranks(2);
  for (int i = 0; i < 2; ++i) {
    ranks.submit(0, "g", gather(1));
    ranks.submit(1, "g", gather(5));
    CHECK(ranks.round()[0].first_extents == std::vector<std::int64_t>{1, 5});
  }
  CHECK(ranks.bytes() == 4);
  ranks.submit(0, "g", gather(1));
  ranks.submit(1, "g", gather(6));
  CHECK(ranks.round()[0].first_extents == std::vector<std::int64_t>{1, 6});
}

TEST_CASE("the operation that ran least recently is forgotten, but none that a rank waits for", "[runtime][unit]") {
  Ranks ranks(2, /*capacity=*/2);
  const auto run = [&](const std::string& name) {
    for (const std::size_t rank : {0u, 1u}) ranks.submit(rank, name);
    REQUIRE(ranks.rounds_until_silent().size() == 1);
  };
  run("a");
  run("b");
  run("a");
  run("c");
  CHECK(ranks[0].cache().find("a", kSum));
  CHECK_FALSE(ranks[0].cache().find("b", kSum));
  ranks.submit(0, "a");
  ranks.submit(1, "c");
  CHECK(ranks.round().empty());
  run("d");  // finds no room
  CHECK_FALSE(ranks[0].cache().find("d", kSum));
  ranks.submit(1, "a");
  ranks.submit(0, "c");
  CHECK(ranks.round().size() == 2);
}

TEST_CASE("a number is found by the name that has it now", "[runtime][unit]") {
  Ranks ranks(2, /*capacity=*/2);
  for (int i = 0; i < 200; ++i) {
    const std::string name = (i % 2 == 0 ? "a name that is long: " : "") + std::to_string(i);
    CHECK_FALSE(ranks[0].cache().find(name, kSum));
    for (const std::size_t rank : {0u, 1u}) ranks.submit(rank, name);
    REQUIRE(ranks.rounds_until_silent().size() == 1);
    REQUIRE(ranks[0].cache().find(name, kSum));
    CHECK(ranks[0].cache().name(*ranks[0].cache().find(name, kSum)) == name);
    CHECK_FALSE(ranks[0].cache().find(name, gather(2)));
  }
}

TEST_CASE("a request that is longer than a round takes several", "[runtime][unit]") {
  Ranks ranks(2, 1024, /*most=*/16);
  const std::string name(100, 'n');
  for (const std::size_t rank : {0u, 1u}) {
    ranks.submit(rank, name);
    ranks.submit(rank, "next");
  }
  const auto decisions = ranks.rounds_until_silent();
  REQUIRE(decisions.size() == 2);
  CHECK(decisions[0].name == name);
}

TEST_CASE("what makes no sense is refused", "[runtime][unit]") {
  Ranks ranks(2);
  for (const std::size_t rank : {0u, 1u}) ranks.submit(rank, "x");
  ranks.round();
  const auto id = ranks[0].cache().find("x", kSum).value();
  const auto refuses = [&](auto action) {
    try {
      action();
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::kProtocol);
    }
  };
  refuses([&] { ranks[0].receive(1, id + 1, true); });
  refuses([&] { ranks[0].receive(1, "abc"); });
  refuses([&] { ranks[0].receive(1, std::string_view("\1\0\0\0x", 5)); });
  ranks[0].receive(1, id, true);
  refuses([&] { ranks[0].receive(1, id, true); });
}

TEST_CASE("rounds tell the timeline who is ready, known or not", "[runtime][unit]") {
  struct : NegotiationObserver {
    void rank_ready(const std::string& name, Kind, int rank) override { seen += name + std::to_string(rank) + " "; }
    std::string seen;
  } observer;
  Ranks ranks(2, 1024, 4096, &observer);
  for (int i = 0; i < 2; ++i) {
    ranks.submit(1, "x");
    ranks.round();
    ranks.submit(0, "x");
    ranks.round();
  }
  for (const std::size_t rank : {0u, 1u}) ranks[rank].agree(ranks[0].cache().find("x", kSum).value(), true);
  CHECK(observer.seen == "x1 x0 x1 x0 x0 x1 ");
}

TEST_CASE("a rank that joins excuses itself from what others say by number, before and after", "[runtime][unit]") {
  Ranks ranks(3);
  const Signature join{.kind = Kind::kJoin};
  for (const char* name : {"x", "y"}) {
    for (const std::size_t rank : {0u, 1u, 2u}) ranks.submit(rank, name);
    REQUIRE(ranks.round().size() == 1);
  }
  for (const std::size_t rank : {0u, 1u}) ranks.submit(rank, "x");
  CHECK(ranks.round().empty());
  ranks.submit(2, "<join>", join);
  auto decisions = ranks.round();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].name == "x");
  REQUIRE(decisions[0].for_joined);
  CHECK(*decisions[0].for_joined == kSum);
  ranks.submit(0, "y");
  ranks.round();
  ranks.submit(1, "y");
  decisions = ranks.round();
  REQUIRE(decisions.size() == 1);
  REQUIRE(decisions[0].for_joined);
  CHECK(*decisions[0].for_joined == kSum);
  CHECK(ranks[0].is_busy(2));
  for (const std::size_t rank : {0u, 1u}) ranks.submit(rank, "<join>", join);
  decisions = ranks.round();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].first_extents == std::vector<std::int64_t>{1});
  CHECK_FALSE(ranks[0].is_busy(2));
  for (int i = 0; i < 2; ++i) {
    for (const std::size_t rank : {0u, 1u, 2u}) ranks.submit(rank, "y");
    decisions = ranks.round();
    REQUIRE(decisions.size() == 1);
    CHECK_FALSE(decisions[0].for_joined);
  }
  CHECK(ranks.bytes() == 4);
}

// Any schedule: ranks submit the same operations in any order, at any time, some of them with another signature, with
// small caches and small rounds. Each operation is decided once, when all have said it, and rightly.
TEST_CASE("random schedules come to one decision for each operation", "[runtime][unit]") {
  constexpr int kSteps = 40, kNames = 8;
  const auto seed = static_cast<unsigned>(GENERATE(range(0, 60)));
  std::mt19937 random(seed);
  const auto below = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  const int size = 1 + below(4);
  Ranks ranks(size, static_cast<std::size_t>(below(2) == 0 ? below(5) : 1024), below(2) == 0 ? 24 : 4096);
  INFO("seed " << seed << ", size " << size);
  for (int step = 0; step < kSteps; ++step) {
    std::map<std::string, std::vector<Signature>> signatures;
    std::vector<std::vector<std::string>> orders(static_cast<std::size_t>(size));
    for (int number = 0; number < kNames; ++number) {
      if (below(3) == 0) continue;
      const std::string name = "t" + std::to_string(number);
      const Signature base = number % 2 == 0 ? kSum : gather(1 + below(2));
      for (auto& order : orders) {
        order.insert(order.begin() + below(static_cast<int>(order.size()) + 1), name);
        signatures[name].push_back(base);
        if (below(10) == 0) signatures[name].back().shape.front() = 9;
      }
    }
    std::multiset<std::string> executed, rejected, expected_executed, expected_rejected;
    const auto note = [&](const std::vector<Decision>& decisions) {
      for (const Decision& decision : decisions) {
        (decision.type == Type::kExecute ? executed : rejected).insert(decision.name);
        if (!decision.first_extents.empty()) {
          for (std::size_t rank = 0; rank < orders.size(); ++rank) {
            CHECK(decision.first_extents[rank] == signatures[decision.name][rank].shape.front());
          }
        }
      }
    };
    std::vector<std::size_t> said(orders.size());
    for (bool any = true; any;) {
      any = false;
      for (std::size_t rank = 0; rank < orders.size(); ++rank) {
        for (int i = below(4); i > 0 && said[rank] < orders[rank].size(); --i) {
          const std::string& name = orders[rank][said[rank]++];
          ranks.submit(rank, name, signatures[name][rank]);
        }
        any = any || said[rank] < orders[rank].size();
      }
      note(ranks.round());
    }
    note(ranks.rounds_until_silent());
    for (const auto& [name, each] : signatures) {
      const bool agree = has_own_first_extent(each[0].kind) ||
                         std::all_of(each.begin(), each.end(), [&](const Signature& s) { return s == each[0]; });
      (agree ? expected_executed : expected_rejected).insert(name);
    }
    REQUIRE(executed == expected_executed);
    REQUIRE(rejected == expected_rejected);
    for (int rank = 0; rank < size; ++rank) REQUIRE_FALSE(ranks[0].is_busy(rank));
  }
}

TEST_CASE("a process set that ends takes its announcements along, and later ones are ignored", "[runtime][unit]") {
  Ranks ranks(2, /*capacity=*/1024, /*most=*/4096, nullptr, GENERATE(std::size_t{0}, std::size_t{1} << 20));
  Signature of_set = kSum;
  of_set.process_set = 5;
  const int before = GENERATE(0, 1, 8);  // so often all operations have run; then there may be a plan
  for (int step = 0; step < before; ++step) {
    for (const std::size_t rank : {0u, 1u}) {
      ranks.submit(rank, "x");
      ranks.submit(rank, "x (process set 5)", of_set);
      ranks.submit(rank, "y (process set 5)", of_set);
    }
    REQUIRE(ranks.rounds_until_silent().size() == 3);
  }
  ranks.submit(0, "x");
  ranks.submit(0, "x (process set 5)", of_set);
  CHECK(ranks.rounds_until_silent().empty());
  CHECK(ranks[1].is_busy(0));
  ranks.submit(1, "y (process set 5)", of_set);  // not announced yet
  for (const std::size_t rank : {0u, 1u}) ranks[rank].end_set(5);
  CHECK(ranks[0].missing("x (process set 5)").empty());
  CHECK(ranks[0].missing("x") == std::vector<int>{1});
  CHECK_FALSE(ranks[0].cache().find("x (process set 5)"));
  CHECK(ranks.rounds_until_silent().empty());
  ranks.submit(1, "x (process set 5)", of_set);
  ranks.submit(0, "y (process set 5)", of_set);
  CHECK(ranks.rounds_until_silent().empty());
  ranks.submit(1, "x");
  const auto decisions = ranks.rounds_until_silent();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].name == "x");
  for (const int rank : {0, 1}) CHECK_FALSE(ranks[0].is_busy(rank));
}
