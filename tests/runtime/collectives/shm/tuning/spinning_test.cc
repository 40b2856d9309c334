#include "runtime/collectives/shm/tuning/spinning.hpp"

#include <future>
#include <sched.h>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

using namespace runjob::runtime;

namespace {

constexpr std::chrono::hours kLongerThanAnyTest{1};

/// Keeps the calling thread on the processor that it runs on.
class OneProcessor {
 public:
  OneProcessor() {
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0) throw std::runtime_error("sched_getaffinity");
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    if (::sched_setaffinity(0, sizeof one, &one) != 0) throw std::runtime_error("sched_setaffinity");
  }
  ~OneProcessor() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_;
};

struct TwoRanks {
  Layout layout = small_layout(2);
  TestSegment segment{layout};
  SegmentView view{segment.data(), layout};
  Step& field = view.fields(1).progress.filled;
  std::atomic<bool> cancelled{false};
};

}  // namespace

TEST_CASE("a spin ends when the field has reached its value", "[runtime][unit]") {
  TwoRanks ranks;
  Spinning spinning(ranks.view, 0, kLongerThanAnyTest);
  auto reached = std::async(std::launch::async, [&] { return spinning.wait(1, ranks.field, 2, ranks.cancelled); });
  ranks.field.store(1);
  ranks.field.store(2);
  CHECK(reached.get());
}

TEST_CASE("a spin ends when the group ends or the waits are cancelled", "[runtime][unit]") {
  const bool is_cancelled = GENERATE(true, false);
  TwoRanks ranks;
  Spinning spinning(ranks.view, 0, kLongerThanAnyTest);
  auto reached = std::async(std::launch::async, [&] { return spinning.wait(1, ranks.field, 1, ranks.cancelled); });
  if (is_cancelled) {
    ranks.cancelled = true;
  } else {
    ranks.view.header().ended_by = 2;
  }
  CHECK_FALSE(reached.get());
}

TEST_CASE("a rank does not spin on the processor that the other rank ran on", "[runtime][unit]") {
  const OneProcessor one;
  TwoRanks ranks;
  Spinning other(ranks.view, 1, kLongerThanAnyTest), spinning(ranks.view, 0, kLongerThanAnyTest);
  other.report_processor();
  CHECK(ranks.view.fields(1).processor == static_cast<std::uint32_t>(::sched_getcpu() + 1));
  CHECK_FALSE(spinning.wait(1, ranks.field, 1, ranks.cancelled));
}

TEST_CASE("a rank without time to spin does not look at all", "[runtime][unit]") {
  TwoRanks ranks;
  Spinning spinning(ranks.view, 0, std::chrono::seconds(0));
  ranks.field.store(1);
  CHECK_FALSE(spinning.wait(1, ranks.field, 1, ranks.cancelled));
}
