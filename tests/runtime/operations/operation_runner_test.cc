#include "runtime/operations/operation_runner.hpp"

#include <array>

#include "runtime/collectives/allreduce_stages.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

EngineTimeline off{std::make_shared<Timeline>(0, std::vector<std::string>()), 0};

constexpr FusionAdvice kAdvice{.fuses_below = 64, .buffer_bytes = 128};

/// The operations of one rank, and what became of them.
class Rank {
 public:
  void add(const std::string& name, Signature signature, void* in_place, std::vector<GroupBuffers> group = {}) {
    submissions_.push_back(std::make_unique<Submission>(
        Submission{name, std::move(signature), in_place, in_place, 0, {}, std::move(group)}));
    results_.push_back(std::make_unique<Completion::Result>());
    decisions_.push_back(std::make_unique<Decision>());
    decisions_.back()->name = name;
    operations_.push_back({decisions_.back().get(), submissions_.back().get(), results_.back().get()});
  }

  void run(const FusionSettings& settings = {}) {
    OperationRunner runner({[this](const Call& call) { return do_call(call); }}, off, 0, 1, settings, kAdvice);
    runner.run(operations_, [this](std::span<AgreedOperation* const> done) {
      for (const AgreedOperation* operation : done) done_.push_back(operation->decision->name);
    });
  }

  AgreedOperation& operation(std::size_t index) { return operations_[index]; }
  Completion::Result& result(std::size_t index) { return *results_[index]; }
  Submission& submission(std::size_t index) { return *submissions_[index]; }
  const std::vector<std::string>& done() const { return done_; }
  const std::vector<std::size_t>& counts() const { return counts_; }
  Status outcome;

 private:
  Status do_call(const Call& call) {
    counts_.push_back(call.count);
    if (outcome.ok() && call.kind == Kind::kAllreduce) AllreduceStages(call, 1).finish();
    return outcome;
  }

  std::vector<std::unique_ptr<Decision>> decisions_;
  std::vector<std::unique_ptr<Submission>> submissions_;
  std::vector<std::unique_ptr<Completion::Result>> results_;
  std::vector<AgreedOperation> operations_;
  std::vector<std::string> done_;
  std::vector<std::size_t> counts_;
};

Signature sum(std::int64_t count, DType dtype = DType::kInt32) {
  return {.kind = Kind::kAllreduce, .dtype = dtype, .shape = {count}};
}

Signature twice(Signature signature) {
  signature.prescale = 2;
  return signature;
}

}  // namespace

TEST_CASE("small allreduces run as one, others between them by themselves", "[runtime][unit]") {
  Rank rank;
  std::array<std::int32_t, 4> a{1, 2, 3, 4}, c{5, 6, 7, 8};
  std::array<std::int32_t, 20> large{};
  rank.add("a", twice(sum(4)), &a);
  rank.add("barrier", {.kind = Kind::kBarrier}, nullptr);
  rank.add("large", twice(sum(20)), &large);
  rank.add("nothing", twice(sum(0)), nullptr);
  rank.add("c", twice(sum(4)), &c);
  rank.run();
  CHECK(rank.counts() == std::vector<std::size_t>{8, 20});
  CHECK(rank.done() == std::vector<std::string>{"a", "c", "barrier", "large", "nothing"});
  CHECK(a == std::array<std::int32_t, 4>{2, 4, 6, 8});
  CHECK(c == std::array<std::int32_t, 4>{10, 12, 14, 16});
}

TEST_CASE("with a threshold of 0 every tensor runs alone", "[runtime][unit]") {
  Rank rank;
  std::array<std::int32_t, 2> a{}, b{};
  rank.add("a", sum(2), &a);
  rank.add("b", sum(2), &b);
  rank.run({.threshold_bytes = 0});
  CHECK(rank.counts() == std::vector<std::size_t>{2, 2});
}

TEST_CASE("a failure is that of every tensor in the batch", "[runtime][unit]") {
  Rank rank;
  rank.outcome = Status(Errc::kTimeout, "slow");
  std::array<std::int32_t, 2> a{}, b{};
  rank.add("a", sum(2), &a);
  rank.add("b", sum(2), &b);
  rank.run();
  CHECK(rank.done() == std::vector<std::string>{"a", "b"});
  CHECK(rank.operation(0).status.message() == "slow");
  CHECK(rank.operation(1).status.message() == "slow");
}

TEST_CASE("a group is done with the last of its tensors, each in its dtype", "[runtime][unit]") {
  Rank rank;
  std::array<std::int32_t, 2> ints{1, 2}, alone{7, 8};
  std::array<float, 3> floats{1, 2, 3};
  std::array<float, 40> large{};
  large[39] = 4;
  Signature group = twice({.kind = Kind::kAllreduce});
  group.group = {{DType::kInt32, {2}}, {DType::kFloat32, {3}}, {DType::kUint8, {0}}, {DType::kFloat32, {40}}};
  rank.add("alone", twice(sum(2)), &alone);
  rank.add("group", group, nullptr, {{&ints, &ints}, {&floats, &floats}, {}, {&large, &large}});
  SECTION("with what is not of it") {
    rank.run();
    CHECK(rank.counts() == std::vector<std::size_t>{4, 3, 40});
  }
  SECTION("by itself") {
    rank.run({.mixes_groups = false});
    CHECK(rank.counts() == std::vector<std::size_t>{2, 2, 3, 40});
  }
  CHECK(rank.done() == std::vector<std::string>{"alone", "group"});
  CHECK(ints == std::array<std::int32_t, 2>{2, 4});
  CHECK(floats == std::array<float, 3>{2, 4, 6});
  CHECK(large[39] == 8);
}

TEST_CASE("a gathered or scattered group leaves a result for each tensor", "[runtime][unit]") {
  Rank rank;
  std::array<std::int32_t, 6> in{1, 2, 3, 4, 5, 6};
  Signature group{.kind = Kind::kAllgather};
  group.group = {{DType::kInt32, {2, 3}}, {DType::kInt32, {1}}};
  rank.add("gather", group, nullptr, {{&in, nullptr}, {&in, nullptr}});
  rank.operation(0).decision->first_extents = {2, 1};
  group.kind = Kind::kReducescatter;
  rank.add("scatter", group, nullptr, {{&in, nullptr}, {&in, nullptr}});
  rank.run();
  CHECK(rank.result(0).tensors[0].shape == Shape{2, 3});
  CHECK(rank.result(0).tensors[1].shape == Shape{1});
  CHECK(rank.result(1).tensors[0].shape == Shape{2, 3});
  CHECK(rank.counts() == std::vector<std::size_t>{6, 1, 6, 1});
}

TEST_CASE("a rank that has joined gives zeros, for a group as for a tensor", "[runtime][unit]") {
  Rank rank;
  Signature group{.kind = Kind::kAllreduce};
  group.group = {{DType::kInt32, {2}}, {DType::kFloat64, {3}}};
  rank.add("group", group, nullptr);
  rank.operation(0).decision->for_joined = std::make_shared<Signature>(group);
  rank.add("tensor", sum(30), nullptr);
  rank.operation(1).decision->for_joined = std::make_shared<Signature>(sum(30));
  rank.run();
  CHECK(rank.counts() == std::vector<std::size_t>{2, 3, 30});
  CHECK(rank.operation(0).status.ok());
  CHECK(static_cast<const std::int32_t*>(rank.submission(1).output)[29] == 0);
}
