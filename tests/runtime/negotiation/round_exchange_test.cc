#include "runtime/negotiation/round_exchange.hpp"

#include <array>
#include <map>
#include <memory>

#include "runtime/backends/local_backend.hpp"
#include "runtime/collectives/shm/channels.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"
#include "tests/runtime/negotiating_ranks.hpp"

using namespace runjob::runtime;

namespace {

Submission sum(const std::string& name, std::vector<std::int32_t>& values) {
  return {name,
          {.kind = Kind::kAllreduce, .dtype = DType::kInt32, .shape = {static_cast<std::int64_t>(values.size())}},
          values.data(),
          values.data()};
}

const RoundNegotiation::Settings kSettings{.capacity = 1024, .plans = {.bucket_bytes = 1u << 20}};

/// For rounds whose results nobody looks at.
const void* anything(const std::string&) {
  static const std::vector<std::byte> bytes(8192);
  return bytes.data();
}

/// A sum of what is in the messages.
void combine(RoundExchange& exchange, const std::vector<std::int32_t>& input, std::vector<std::int32_t>& output,
             const Decision& decision) {
  Call call{.kind = Kind::kAllreduce, .dtype = DType::kInt32, .op = ReduceOp::kSum};
  call.input = input.data();
  call.output = output.data();
  call.count = output.size();
  exchange.combine(call, decision);
}

/// Two ranks in one thread, which gives their messages by turns.
struct Pair {
  Pair() {
    for (const int rank : {0, 1}) {
      channels.push_back(std::make_unique<Channels>(segment.data(), layout, options_of(rank)));
      rounds.push_back(std::make_unique<ShmRounds>(channels.back()->group, channels.back()->small));
      exchanges.push_back(std::make_unique<RoundExchange>(*rounds.back(), rank, std::vector<std::string>{"a", "a"},
                                                          kSettings, nullptr));
    }
  }

  /// A round in which both say what they have; what they decide alike.
  std::vector<Decision> round() {
    for (auto& exchange : exchanges) exchange->begin_round(anything);
    for (auto& exchange : exchanges) REQUIRE(exchange->collect(std::nullopt));
    const auto decisions = exchanges[0]->decide().decisions;
    CHECK(bytes_of(exchanges[1]->decide().decisions) == bytes_of(decisions));
    return decisions;
  }

  /// Both know the operation from now on.
  void learn(const Submission& submission) {
    for (auto& exchange : exchanges) exchange->negotiation().submit({{submission.name, submission.signature}});
    REQUIRE(round().size() == 1);
  }

  const Layout layout = small_layout(2);
  const TestSegment segment{layout};
  std::vector<std::unique_ptr<Channels>> channels;
  std::vector<std::unique_ptr<ShmRounds>> rounds;
  std::vector<std::unique_ptr<RoundExchange>> exchanges;
};

constexpr auto kNow = Rounds::Clock::time_point();

}  // namespace

TEST_CASE("a rank alone agrees with itself", "[runtime][unit]") {
  LocalRounds rounds;
  RoundExchange exchange(rounds, 0, {"a"}, kSettings, nullptr);
  std::vector<std::int32_t> values{4};
  CHECK_FALSE(exchange.decide_at_once(lent(sum("x", values)), std::nullopt).decision);
  CHECK_FALSE(exchange.is_in_round());
  exchange.negotiation().submit({{"x", sum("x", values).signature}});
  CHECK(exchange.has_reason());
  exchange.begin_round(anything);
  CHECK(exchange.is_in_round());
  REQUIRE(exchange.collect(std::nullopt));
  CHECK(exchange.decide().decisions.size() == 1);
  CHECK(exchange.decide_at_once(lent(sum("x", values)), std::nullopt).decision);
}

TEST_CASE("an operation that is known and small takes one round", "[runtime][unit]") {
  Pair ranks;
  std::vector<std::int32_t> a{1, 2}, b{10, 20};
  ranks.learn(sum("x", a));
  CHECK_FALSE(ranks.exchanges[0]->decide_at_once(lent(sum("x", a)), kNow).decision);  // the other one has not come
  CHECK(ranks.exchanges[0]->is_in_round());
  CHECK(ranks.exchanges[1]->has_reason());
  const Decision* decision = ranks.exchanges[1]->decide_at_once(lent(sum("x", b)), std::nullopt).decision;
  REQUIRE(decision);
  combine(*ranks.exchanges[1], b, b, *decision);
  CHECK(b == std::vector<std::int32_t>{11, 22});
  REQUIRE(ranks.exchanges[0]->collect(std::nullopt));
  const auto outcome = ranks.exchanges[0]->decide();
  REQUIRE(outcome.is_in_messages);
  CHECK(outcome.decisions[0].name == "x");
  combine(*ranks.exchanges[0], a, a, outcome.decisions[0]);
  CHECK(a == std::vector<std::int32_t>{11, 22});
}

TEST_CASE("two that say different things go on, and no buffer has changed", "[runtime][unit]") {
  Pair ranks;
  std::vector<std::int32_t> a{1, 2}, b{10, 20};
  ranks.learn(sum("x", a));
  ranks.learn(sum("y", a));
  CHECK_FALSE(ranks.exchanges[0]->decide_at_once(lent(sum("x", a)), kNow).decision);
  CHECK_FALSE(ranks.exchanges[1]->decide_at_once(lent(sum("y", b)), std::nullopt).decision);
  for (auto& exchange : ranks.exchanges) {
    REQUIRE(exchange->collect(std::nullopt));
    CHECK(exchange->decide().decisions.empty());
  }
  CHECK(a == std::vector<std::int32_t>{1, 2});
  ranks.exchanges[0]->negotiation().submit({{"y", sum("y", a).signature}});
  ranks.exchanges[1]->negotiation().submit({{"x", sum("x", b).signature}});
  const auto decisions = ranks.round();
  REQUIRE(decisions.size() == 2);
}

TEST_CASE("what is large, unknown or not the only thing to say does not go at once", "[runtime][unit]") {
  Pair ranks;
  std::vector<std::int32_t> large(2000), small(1);
  ranks.learn(sum("large", large));
  ranks.learn(sum("small", small));
  CHECK_FALSE(ranks.exchanges[0]->decide_at_once(lent(sum("large", large)), kNow).decision);
  CHECK_FALSE(ranks.exchanges[0]->decide_at_once(lent(sum("new", small)), kNow).decision);
  ranks.exchanges[0]->negotiation().submit({{"other", sum("other", small).signature}});
  CHECK_FALSE(ranks.exchanges[0]->decide_at_once(lent(sum("small", small)), kNow).decision);
  CHECK_FALSE(ranks.exchanges[0]->is_in_round());
}

TEST_CASE("a bucket of the plan takes one round, with its data in it when that is small", "[runtime][unit]") {
  Pair ranks;
  const bool is_small = GENERATE(true, false);
  std::vector<std::int32_t> a{1, 2, 3}, b(is_small ? 2 : 5000, 5), c{};
  std::map<std::string, std::vector<std::int32_t>*> values{{"a", &a}, {"b", &b}, {"c", &c}};
  const auto submit = [&] {
    for (auto& exchange : ranks.exchanges) {
      for (const auto& [name, each] : values) exchange->negotiation().submit({{name, sum(name, *each).signature}});
    }
  };
  const auto input_of = [&](const std::string& name) -> const void* { return values.at(name)->data(); };
  const auto round = [&] {
    for (auto& exchange : ranks.exchanges) exchange->begin_round(input_of);
    for (auto& exchange : ranks.exchanges) REQUIRE(exchange->collect(std::nullopt));
  };
  for (int i = 0; i < 3; ++i) {
    submit();
    round();
    for (auto& exchange : ranks.exchanges) CHECK(exchange->decide().decisions.size() == 3);
    CHECK(ranks.exchanges[0]->planned_rounds() == 0);
  }
  ranks.exchanges[0]->negotiation().submit({{"a", sum("a", a).signature}});
  CHECK(ranks.exchanges[0]->holds_all());
  CHECK_FALSE(ranks.exchanges[0]->has_reason());
  ranks.exchanges[0]->negotiation().release();
  for (const char* name : {"b", "c"})
    ranks.exchanges[0]->negotiation().submit({{name, sum(name, *values[name]).signature}});
  for (const auto& [name, each] : values)
    ranks.exchanges[1]->negotiation().submit({{name, sum(name, *each).signature}});
  round();  // one says what the other one says as a bucket
  for (auto& exchange : ranks.exchanges) {
    const auto outcome = exchange->decide();
    CHECK(outcome.decisions.size() == 3);
    CHECK_FALSE(outcome.is_in_messages);
  }
  submit();
  round();
  for (auto& exchange : ranks.exchanges) {
    const auto outcome = exchange->decide();
    REQUIRE(outcome.decisions.size() == 3);
    CHECK(outcome.is_in_messages == is_small);
    CHECK(exchange->planned_rounds() == 1);
    for (const Decision& decision : outcome.decisions) {
      std::vector<std::int32_t> result(values.at(decision.name)->size());
      if (is_small) combine(*exchange, *values.at(decision.name), result, decision);
      for (std::size_t i = 0; is_small && i < result.size(); ++i)
        CHECK(result[i] == 2 * (*values.at(decision.name))[i]);
    }
  }
}
