#include "launcher/srun_task/step_names.hpp"

#include <sys/socket.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

using namespace runjob;

// tests/python/slurm/test_slurm_steps.py has steps with PMI and with PMIx.

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
