#include <cstdlib>

#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"

/// The verdicts of runtime/collectives/nccl/agreement.cc, in jobs.

using namespace runjob::runtime;

TEST_CASE("without a communicator the tensors go through the host", "[runtime][multiproc][stand-in]") {
  SECTION("two ranks on one GPU") {
    on_ranks(2, [&](int) { check(sum_of_ones(0, "x")); });
  }
  SECTION("no NCCL") {
    on_ranks(2, [&](int rank) { check(sum_of_ones(rank, "x")); }, {{"RUNJOB_NCCL_LIBRARY", "/nowhere/libnccl.so"}});
  }
  SECTION("an NCCL that is too old") {
    on_ranks(2, [&](int rank) { check(sum_of_ones(rank, "x")); }, {{"RUNJOB_STAND_IN_NCCL", "21700"}});
  }
}

TEST_CASE("different versions of NCCL are named with their ranks and files", "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    if (rank == 1) ::setenv("RUNJOB_STAND_IN_NCCL", "22703", 1);
    const CapturedErrors errors;
    check(sum_of_ones(rank, "x"));
    if (rank == 1) return;
    require_text(errors.text(), "the ranks' versions of NCCL differ: rank 0 has NCCL 2.28.9 (/");
    require_text(errors.text(), std::string(stand_in::kLibraryFile) + "), rank 1 has NCCL 2.27.3 (/");
  });
}
