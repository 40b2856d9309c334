#pragma once

#include <dlfcn.h>

#include "tests/catch.hpp"
#include "tests/gpu_stand_in/stand_in.hpp"
#include "tests/runtime/gpu_tensors.hpp"
#include "tests/runtime/rank_processes.hpp"

/// Ranks with GPUs, over the stand-ins of CUDA and NCCL.
namespace runjob::runtime {

/// Runs `body(rank)` in a job of these ranks, which must all succeed.
template <class Body>
void on_gpu_ranks(const RankOptions& options, Body body) {
  for (const Outcome& each : run_ranks(options, [&](int rank) {
         check(runjob_init());
         body(rank);
         check(runjob_shutdown());
         return Outcome();
       })) {
    INFO(each.message);
    CHECK(each.ok());
  }
}

template <class Body>
void on_gpu_ranks(int size, Body body, const Environment& environment = {}) {
  RankOptions options = on_one_host(size);
  options.environment = environment;
  on_gpu_ranks(options, body);
}

inline const runjob_stand_in_gpu& stand_in_gpu() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  return *reinterpret_cast<const runjob_stand_in_gpu* (*)()>(::dlsym(driver, "runjob_stand_in"))();
}

/// The calls of a function of CUDA or NCCL in this process so far, if RUNJOB_STAND_IN_COUNT lists it.
inline int calls_of(const char* function) {
  return stand_in_gpu().calls(function);
}

}  // namespace runjob::runtime
