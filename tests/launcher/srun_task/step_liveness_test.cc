#include "launcher/srun_task/step_liveness.hpp"

#include "tests/catch.hpp"

using namespace runjob;

namespace {

const StepLiveness::TimePoint kBegin{};

StepLiveness::TimePoint polls(int count) {
  return kBegin + count * kStepPoll;
}

}  // namespace

TEST_CASE("a task that asks for nothing is lost, one that asks is not", "[unit]") {
  StepLiveness tasks(2, kBegin);
  for (int i = 1; i < 4; ++i) {
    tasks.seen(1, polls(i));
    tasks.seen(-1, polls(i));
    tasks.seen(2, polls(i));
    CHECK(tasks.lost(polls(i)).empty());
  }
  CHECK(tasks.lost(polls(4)) == std::vector<int>{0});
  CHECK(tasks.lost(polls(5)) == std::vector<int>{0});
  tasks.ended(0);
  CHECK(tasks.lost(polls(6)).empty());
  CHECK(tasks.lost(polls(7)) == std::vector<int>{1});
}

TEST_CASE("no task is blamed when the whole step was suspended", "[unit]") {
  StepLiveness tasks(2, kBegin);
  CHECK(tasks.lost(polls(1)).empty());
  for (int i = 100; i < 104; ++i) CHECK(tasks.lost(polls(i)).empty());
  CHECK(tasks.lost(polls(104)) == std::vector<int>{0, 1});
}

TEST_CASE("a step has ended when each of its tasks has, however often that is said", "[unit]") {
  StepLiveness tasks(2, kBegin);
  tasks.ended(1);
  tasks.ended(1);
  CHECK_FALSE(tasks.all_ended());
  tasks.ended(0);
  CHECK(tasks.all_ended());
}
