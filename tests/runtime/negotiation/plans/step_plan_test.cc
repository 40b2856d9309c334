#include "runtime/negotiation/plans/step_plan.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

using Ids = std::vector<StepPlan::Id>;

std::uint64_t hash_of(StepPlan::Id id) {
  return id * 1000003u;
}

std::vector<Ids> buckets(const StepPlan& plan) {
  std::vector<Ids> result;
  for (const auto& bucket : plan.buckets()) result.push_back(bucket.ids);
  return result;
}

}  // namespace

TEST_CASE("a bucket ends when it has enough, and before what begins something", "[runtime][unit]") {
  const StepPlan plan({{3, 60}, {1, 40}, {0, 10}, {2, 10}, {4, 10, true}, {5, 0}}, 100, hash_of);
  CHECK(buckets(plan) == std::vector<Ids>{{3, 1}, {0, 2}, {4, 5}});
  CHECK(plan.bucket_of(2) == 1u);
  CHECK_FALSE(plan.bucket_of(6));
}

TEST_CASE("an operation alone is in no bucket, but in the plan", "[runtime][unit]") {
  const StepPlan plan({{0, 500}, {1, 1}, {2, 1}, {3, 1, true}}, 100, hash_of);
  CHECK(buckets(plan) == std::vector<Ids>{{1, 2}});
  CHECK_FALSE(plan.bucket_of(0));
  CHECK(plan.contains(3));
  CHECK(plan.is_of({{3, 1}, {2, 1}, {1, 1}, {0, 1}}));
  CHECK_FALSE(plan.is_of({{3, 1}, {2, 1}, {1, 1}}));
  CHECK_FALSE(plan.is_of({{3, 1}, {2, 1}, {1, 1}, {7, 1}}));
}

TEST_CASE("a bucket's hash is that of what is in it, in its order", "[runtime][unit]") {
  const StepPlan plan({{0, 1}, {1, 1}, {2, 1, true}, {3, 1}}, 100, hash_of);
  const auto hash = [&](std::size_t bucket) { return plan.buckets()[bucket].hash; };
  CHECK(hash(0) != hash(1));
  CHECK(plan.find(hash(1)) == 1u);
  CHECK_FALSE(plan.find(hash(1) ^ 1));
  CHECK(StepPlan({{1, 1}, {0, 1}}, 100, hash_of).buckets()[0].hash != hash(0));
  CHECK(StepPlan({{0, 1}, {1, 1}}, 100, [](StepPlan::Id id) { return hash_of(id) + 1; }).buckets()[0].hash != hash(0));
}

TEST_CASE("a bucket that fails too often in a row is given up, and no other", "[runtime][unit]") {
  StepPlan plan({{0, 1}, {1, 1}, {2, 1, true}, {3, 1}}, 100, hash_of);
  for (int i = 0; i < 2 * StepPlan::kMostFailures; ++i) {
    plan.agreed(1);
    if (i % StepPlan::kMostFailures == 0) plan.agreed(0);
    CHECK_FALSE(plan.end_cycle());
  }
  CHECK_FALSE(plan.has_given_up());
  plan.agreed(1);
  CHECK(plan.end_cycle());
  CHECK(plan.has_given_up());
  CHECK(buckets(plan) == std::vector<Ids>{{2, 3}});
  CHECK(plan.bucket_of(2) == 0u);
  CHECK_FALSE(plan.bucket_of(0));
  CHECK(plan.contains(0));
}
