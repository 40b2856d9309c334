#include "launcher/srun_task/pmix_names.hpp"

#include "tests/catch.hpp"

using namespace runjob;

// tests/python/slurm/test_slurm_steps.py has names that are published and looked up: they need slurmd.

// The name is the sanitizer's. PMIx's library does not free some bytes of its own when its initialization fails.
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions();

extern "C" const char* __lsan_default_suppressions() {
  return "leak:libpmix.so";
}

TEST_CASE("a task that PMIx does not know has no names", "[net]") {
  SlurmTask task;
  CHECK(PmixNames::open(task) == nullptr);
  task.pmix_namespace = "slurm.pmix.17.2";  // PMIx takes this process for a job of its own
  CHECK(PmixNames::open(task) == nullptr);
  CHECK(PmixNames::open(task) == nullptr);
}
