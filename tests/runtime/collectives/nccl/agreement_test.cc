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

TEST_CASE("with --encrypt-data NCCL connects only ranks of one host, unless the network encrypts by itself",
          "[runtime][multiproc][stand-in]") {
  const bool is_allowed = GENERATE(false, true);
  RankOptions options;
  options.hosts = {"alpha", "alpha", "beta"};
  options.environment = {{"RUNJOB_ENCRYPT_DATA", "1"},
                         {"RUNJOB_NCCL_UNENCRYPTED", is_allowed ? "1" : "0"},
                         {"RUNJOB_DYNAMIC_PROCESS_SETS", "1"},
                         {"RUNJOB_STAND_IN_COUNT", "ncclGetUniqueId,ncclCommInitRank"}};
  on_ranks(options, [&](int rank) {
    const std::int32_t members[] = {0, 1};
    std::int32_t set = 0;
    check(runjob_process_set_add(members, 2, &set));
    const CapturedErrors errors;
    check(sum_of_ones(rank, "between hosts"));
    if (rank == 0) {
      const std::string text = errors.text();
      const bool is_told = text.find(
                               "tensors on GPUs go through the host's memory: --encrypt-data is given, and NCCL "
                               "does not encrypt") != text.npos;
      require(is_told != is_allowed, text);
    }
    require(calls_of("ncclCommInitRank") == (is_allowed ? 1 : 0), "communicators between hosts");
    if (!is_allowed) require(calls_of("ncclGetUniqueId") == 0, "no port of NCCL's is open");
    if (rank == 2) return;
    const UserStream stream(rank);
    const std::int64_t extent = 2;
    const GpuTensor<float> tensor(stream, {1, 2});
    const runjob_tensor one = described(tensor, tensor, extent);
    runjob_operation operation = gpu_operation("on one host", RUNJOB_ALLREDUCE, one, stream);
    operation.process_set = set;
    run_on(stream, operation);
    require(tensor.values() == Floats{2, 4}, "the set's sum");
    require(calls_of("ncclCommInitRank") == (is_allowed ? 2 : 1), "a communicator of the host's own");
  });
}
