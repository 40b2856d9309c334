#include "launcher/processes/process_handle.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("a handle signals its process, and nobody once that has ended", "[unit]") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  REQUIRE(child > 0);
  const ProcessHandle process(child);
  CHECK(process.signal(SIGKILL));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK_FALSE(process.signal(0));
  CHECK_FALSE(ProcessHandle(child).signal(0));
}
