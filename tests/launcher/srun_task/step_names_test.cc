#include "launcher/srun_task/step_names.hpp"

#include <sys/socket.h>

#include "base/unique_handle.hpp"
#include "launcher/srun_task/pmix_names.hpp"
#include "tests/catch.hpp"

using namespace runjob;

// tests/python/slurm/test_slurm_steps.py has steps with PMI and with PMIx, whose names need slurmd.

// The name is the sanitizer's. PMIx's library does not free some bytes of its own when its initialization fails.
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions();

extern "C" const char* __lsan_default_suppressions() {
  return "leak:libpmix.so";
}

TEST_CASE("a step without PMI has no names", "[unit]") {
  CHECK(open_step_names(SlurmTask{}) == nullptr);
}

TEST_CASE("with reserved ports, which every task knows, PMI is not asked", "[net]") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const UniqueFd slurmd(ends[0]), own(ends[1]);
  SlurmTask task;
  task.pmi_descriptor = own.get();
  task.reserved_ports = {12'000};
  CHECK(open_step_names(task) == nullptr);
  char byte = 0;
  CHECK(::recv(slurmd.get(), &byte, 1, MSG_DONTWAIT) == -1);
}

TEST_CASE("a task that PMIx does not know has no names", "[net]") {
  SlurmTask task;
  CHECK(PmixNames::open(task) == nullptr);
  task.pmix_namespace = "slurm.pmix.17.2";  // PMIx takes this process for a job of its own
  CHECK(PmixNames::open(task) == nullptr);
  CHECK(PmixNames::open(task) == nullptr);
}
