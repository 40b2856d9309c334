#include "base/ignored_variables.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("variables of Horovod that change nothing here are named in one line", "[unit]") {
  CHECK(ignored_variables_warning({{"HOROVOD_TORUS_ALLREDUCE", "1"}}) ==
        "HOROVOD_TORUS_ALLREDUCE has no effect with runjob; docs/environment.md gives the reasons");
  CHECK(ignored_variables_warning(
            {{"HOROVOD_CONTROLLER", "mpi"}, {"HOROVOD_CPU_OPERATIONS", "CCL"}, {"HOROVOD_THREAD_AFFINITY", "0,1"}}) ==
        "HOROVOD_CONTROLLER, HOROVOD_CPU_OPERATIONS, HOROVOD_THREAD_AFFINITY have no effect with runjob; "
        "docs/environment.md gives the reasons");
  for (const char* name :
       {"HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "HOROVOD_ENABLE_XLA_OPS", "HOROVOD_ADASUM_MPI_CHUNK_SIZE",
        "HOROVOD_CCL_CACHE", "HOROVOD_NUM_NCCL_STREAMS", "RUNJOB_NUM_NCCL_STREAMS"})
    CHECK_THAT(ignored_variables_warning({{name, "10"}}),
               Catch::Matchers::StartsWith(std::string(name) + " has no effect"));
}

TEST_CASE("a variable that asks for what is so anyway is not named, nor one that Horovod does not read", "[unit]") {
  CHECK(ignored_variables_warning({{"HOROVOD_CONTROLLER", "Gloo"},
                                   {"HOROVOD_CPU_OPERATIONS", "gloo"},
                                   {"HOROVOD_AUTOTUNE", "1"},
                                   {"HOROVOD_TORUS_ALLREDUCE", "0"},
                                   {"HOROVOD_NUM_NCCL_STREAMS", "1"},
                                   {"RUNJOB_NUM_NCCL_STREAMS", "0"},  // Horovod's default, which is 1
                                   {"HOROVOD_THREAD_AFFINITY", ""},
                                   {"HOROVOD_MPI_THREADS_DISABLE", "1"},  // there is no MPI thread to disable
                                   {"HOROVOD_BATCH_D2D_MEMCOPIES", "1"},
                                   {"HOROVOD_DISABLE_NVTX_RANGES", "1"},
                                   {"HOROVOD_ENABLE_ASYNC_COMPLETION", "1"},  // runjob.torch reads 0 alone
                                   {"HOROVOD_GPU_OPERATIONS", "NCCL"},        // read when Horovod is built
                                   {"HOROVOD_WITH_PYTORCH", "1"},
                                   {"HOROVOD_OF_THE_USER", "1"},
                                   {"HOROVOD_FUSION_THRESHOLD", "1"}})
            .empty());
}
