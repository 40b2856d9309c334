#include "runtime/negotiation/data_ahead.hpp"

#include "runtime/backends/local_backend.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

/// Messages of up to 100 bytes of data, and 1000 ahead.
class Rounds1000 : public LocalRounds {
 public:
  std::size_t most_data_bytes() const override { return 100; }
  std::size_t most_ahead_bytes() const override { return 1000; }
  void drop_ahead(int rank, std::size_t bytes) override { dropped.emplace_back(rank, bytes); }

  std::vector<std::pair<int, std::size_t>> dropped;
};

}  // namespace

TEST_CASE("data goes ahead when it is too long for a message and not too long for that", "[runtime][unit]") {
  Rounds1000 rounds;
  const DataAhead ahead(rounds);
  CHECK(ahead.is_possible());
  CHECK_FALSE(ahead.goes({}));
  CHECK_FALSE(ahead.goes({100, 100}));
  CHECK(ahead.goes({101, 101}));
  CHECK(ahead.goes({1000, 1000}));
  CHECK_FALSE(ahead.goes({1001, 1001}));
  // Of a longer input only a part may be sent.
  CHECK(ahead.goes({2000, 1000}));
  CHECK(ahead.goes({101, 50}));
  CHECK_FALSE(ahead.goes({100, 50}));
  CHECK_FALSE(ahead.goes({500, 0}));
  LocalRounds none;
  CHECK_FALSE(DataAhead(none).is_possible());
}

TEST_CASE("what was sent ahead in vain is dropped, and the pause after it doubles", "[runtime][unit]") {
  Rounds1000 rounds;
  DataAhead ahead(rounds);
  std::vector<int> pauses;
  for (int miss = 0; miss < 8; ++miss) {
    ahead.note(0, {500, 500}, 500);
    if (miss == 0) ahead.note(1, {700, 600}, 550);
    ahead.settle(std::nullopt, 2);
    pauses.push_back(0);
    for (; !ahead.goes({500, 500}); ++pauses.back()) {
      ahead.settle(std::nullopt, 2);           // neither this
      ahead.settle(DataAhead::Size{5, 5}, 2);  // nor an operation that needs no data ahead counts
      ahead.settle(DataAhead::Size{600, 600}, 2);
    }
  }
  CHECK(pauses == std::vector<int>{2, 4, 8, 16, 32, 64, 64, 64});
  CHECK(rounds.dropped.size() == 9);
  CHECK(rounds.dropped[0] == std::pair(0, std::size_t{500}));
  CHECK(rounds.dropped[1] == std::pair(1, std::size_t{550}));
}

TEST_CASE("what all ranks have sent ahead for one operation is kept for it, and ends the pauses", "[runtime][unit]") {
  Rounds1000 rounds;
  DataAhead ahead(rounds);
  const auto miss = [&] {
    ahead.note(1, {500, 500}, 500);
    ahead.settle(DataAhead::Size{500, 500}, 2);  // the other one has announced it, and not sent
    int pause = 0;
    for (; !ahead.goes({500, 500}); ++pause) ahead.settle(DataAhead::Size{500, 500}, 2);
    return pause;
  };
  CHECK(miss() == 2);
  CHECK(miss() == 4);
  rounds.dropped.clear();
  for (const int rank : {0, 1}) ahead.note(rank, {500, 500}, 500);
  ahead.settle(DataAhead::Size{500, 500}, 2);
  CHECK(rounds.dropped.empty());
  CHECK(ahead.goes({500, 500}));
  CHECK(miss() == 2);
}

TEST_CASE("data ahead of an operation that nobody knows, or that sends none, is an error", "[runtime][unit]") {
  Rounds1000 rounds;
  DataAhead ahead(rounds);
  const std::size_t most = GENERATE(0u, 5u, 1001u);
  CHECK_THROWS_WITH(ahead.note(1, {most, most}, most), ContainsSubstring("data ahead that no operation has"));
}
