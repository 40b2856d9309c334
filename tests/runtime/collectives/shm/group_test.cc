#include "runtime/collectives/shm/group.hpp"

#include <csignal>
#include <future>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/process/time_limit.hpp"
#include "runtime/collectives/transport.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::TimeLimit;

namespace {

/// The error of a wait of rank 0 for rank 1's first field; "" for none.
std::future<std::string> waiting(Group& group, std::uint64_t value) {
  return std::async(std::launch::async, [&group, value]() -> std::string {
    try {
      group.wait(1, group.fields(1).progress.filled, value);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  });
}

/// Work that never ends. The first pause sets `has_paused`.
class EndlessWork : public WaitingWork {
 public:
  explicit EndlessWork(Step& has_paused) : has_paused_(has_paused) {}
  bool move() override { return true; }
  void pause(std::chrono::microseconds most) override {
    has_paused_ = 1;
    std::this_thread::sleep_for(most);
  }

 private:
  Step& has_paused_;
};

/// A child process in which rank 0 waits with `wait`. Its status is 0 if rank 1's message comes in time.
pid_t waiting_process(void* segment, const GroupOptions& options, const std::function<void(Channels&)>& wait) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    Channels channels(segment, small_layout(2), options);
    channels.rounds.give(1, {});
    wait(channels);
    ::_exit(0);
  } catch (const Error&) {
    ::_exit(1);
  }
}

}  // namespace

TEST_CASE("ranks with fewer processors than ranks do not spin", "[runtime][unit]") {
  CHECK(Patience::for_ranks(2, 2).spin.count() > 0);
  CHECK(Patience::for_ranks(3, 2).spin.count() == 0);
  CHECK(Patience::for_ranks(2, 1.5).yields > 0);
}

TEST_CASE("a wait ends when the field has reached its value, however the rank waits", "[runtime][unit]") {
  const Patience patience = GENERATE(Patience{}, Patience{std::chrono::seconds(60), 0}, Patience{{}, 1000});
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Group waiter(segment.data(), layout, options_of(0, patience)), writer(segment.data(), layout, options_of(1));
  auto result = waiting(waiter, 2);
  writer.publish(writer.own().progress.filled, 1);
  writer.publish(writer.own().progress.filled, 2);
  CHECK(result.get().empty());
  waiter.wait(1, waiter.fields(1).progress.filled, 2);  // at once
}

TEST_CASE("a wait that takes too long names the rank and the remedy", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Group group(segment.data(), layout, options_of(0, {}, std::chrono::milliseconds(20)));
  try {
    group.wait(1, group.fields(1).progress.filled, 1);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kTimeout);
    CHECK_THAT(std::string(error.what()), ContainsSubstring("waited 0.02 s for rank 1"));
    CHECK_THAT(std::string(error.what()), ContainsSubstring("RUNJOB_GLOO_TIMEOUT_SECONDS"));
  }
}

TEST_CASE("the time for which a process is stopped does not count in its waits", "[runtime][multiproc]") {
  const auto wait_for_field = [](Channels& zero) { zero.group.wait(1, zero.group.fields(1).progress.filled, 1); };
  const auto wait_for_round = [](Channels& zero) {
    static_cast<void>(zero.rounds.collect(std::nullopt, [](int) { return true; }));
  };
  const bool in_round = GENERATE(false, true);
  const bool with_work = GENERATE(false, true);
  if (in_round && with_work) return;
  GroupOptions options = options_of(0, {}, TimeLimit::kStandstill);
  const Layout layout = small_layout(2);
  void* segment =
      ::mmap(nullptr, layout.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  REQUIRE(segment != MAP_FAILED);
  {
    Channels one(segment, layout, options_of(1));
    Step& has_paused = one.group.fields(0).progress.filled;
    EndlessWork work(has_paused);
    if (with_work) options.work = &work;
    const pid_t child = in_round ? waiting_process(segment, options, wait_for_round)
                                 : waiting_process(segment, options, wait_for_field);
    while (one.group.own().doorbell.sleepers == 0 && has_paused == 0) ::sched_yield();
    ::kill(child, SIGSTOP);
    int status = 0;
    ::waitpid(child, &status, WUNTRACED);
    CHECK(WIFSTOPPED(status));
    std::this_thread::sleep_for(options.timeout + std::chrono::milliseconds(100));
    ::kill(child, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the child looks at the time
    one.rounds.give(1, {});
    one.group.publish(one.group.own().progress.filled, 1);
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  ::munmap(segment, layout.bytes());
}

TEST_CASE("an end from any rank ends the waits of all, later ones too", "[runtime][unit]") {
  const Patience patience = GENERATE(Patience{}, Patience{std::chrono::seconds(60), 0});
  const Layout layout = small_layout(3);
  const TestSegment segment(layout);
  Group zero(segment.data(), layout, options_of(0, patience)), two(segment.data(), layout, options_of(2));
  auto result = waiting(zero, 1);
  two.end();
  zero.end();  // the first one counts
  CHECK(result.get() == "rank 2 ended the exchange");
  CHECK(waiting(zero, 1).get() == "rank 2 ended the exchange");
  CHECK_THROWS_WITH(two.check(), "rank 2 ended the exchange");
}

TEST_CASE("a field that has reached its value counts although the group has ended", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Group zero(segment.data(), layout, options_of(0)), one(segment.data(), layout, options_of(1));
  one.publish(one.own().progress.filled, 1);
  one.end();
  CHECK(waiting(zero, 1).get().empty());
}
