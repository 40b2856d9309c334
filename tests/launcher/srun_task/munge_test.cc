#include "launcher/srun_task/munge.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

// What it does where munged runs: tests/python/slurm/test_slurm_steps.py.

TEST_CASE("a host without MUNGE says what to do instead", "[unit]") {
  CHECK_THROWS_WITH(
      Munge::load("libmunge-that-is-not-there.so"),
      ContainsSubstring("which is not installed here (libmunge-that-is-not-there.so: cannot open shared object"));
  CHECK_THROWS_WITH(Munge::load("libmunge-that-is-not-there.so"), ContainsSubstring("use salloc or sbatch"));
  CHECK_THROWS_WITH(Munge::load("libc.so.6"), "libmunge has no munge_encode");
}
