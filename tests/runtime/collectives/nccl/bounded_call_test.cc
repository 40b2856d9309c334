#include "runtime/collectives/nccl/bounded_call.hpp"

#include <functional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/catch.hpp"

using namespace std::chrono_literals;
namespace nccl = runjob::runtime::nccl;

namespace {

struct Ended {
  int status = 0;
  std::string errors;  ///< its standard error
};

/// A process that gives up a call of `work` at once, and calls exit(3). `work` writes to its standard error.
Ended process_that_gives_up(const std::function<void()>& work) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
    const bool is_done = nccl::run_bounded("call", 0ms, work);
    std::exit(is_done ? 2 : 3);
  }
  ::close(ends[1]);
  Ended ended;
  char part[512];
  for (ssize_t count = 0; (count = ::read(ends[0], part, sizeof part)) > 0;)
    ended.errors.append(part, static_cast<std::size_t>(count));
  ::close(ends[0]);
  ::waitpid(pid, &ended.status, 0);
  return ended;
}

}  // namespace

TEST_CASE("a process that exits waits for a call that was given up", "[runtime][unit]") {
  const Ended ended = process_that_gives_up([] {
    std::this_thread::sleep_for(300ms);
    static_cast<void>(!::write(STDERR_FILENO, "done", 4));
  });
  CHECK(ended.errors == "done");
  CHECK(WEXITSTATUS(ended.status) == 3);
}

TEST_CASE("a process that exits gives up a call that does not end, and keeps its status", "[runtime][unit]") {
  const Ended ended = process_that_gives_up([] { std::this_thread::sleep_for(1h); });
  CHECK_THAT(ended.errors, ContainsSubstring("a call of NCCL has not ended"));
  CHECK(WIFEXITED(ended.status));
  CHECK(WEXITSTATUS(ended.status) == 3);
}

// The sanitizers' exit handlers do not survive a fork from a thread.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a child of a process with a call in progress exits at once", "[runtime][unit]") {
  const Ended ended = process_that_gives_up([] {
    const auto begin = std::chrono::steady_clock::now();
    const pid_t child = ::fork();
    if (child == 0) std::exit(5);
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool is_given_up = std::chrono::steady_clock::now() - begin >= nccl::kExitTime;
    const bool is_right = WEXITSTATUS(status) == 5 && !is_given_up;
    static_cast<void>(!::write(STDERR_FILENO, is_right ? "right" : "wrong", 5));
  });
  CHECK(ended.errors == "right");
}
#endif
