#pragma once

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// What the timeline calls an operation that goes through shared memory; null for what moves nothing.
inline const char* shm_stage(Kind kind) {
  switch (kind) {
    case Kind::kAllreduce:
      return "SHM_ALLREDUCE";
    case Kind::kAllgather:
      return "SHM_ALLGATHER";
    case Kind::kBroadcast:
      return "SHM_BCAST";
    case Kind::kAlltoall:
      return "SHM_ALLTOALL";
    case Kind::kReducescatter:
      return "SHM_REDUCESCATTER";
    case Kind::kBarrier:
    case Kind::kJoin:
      break;
  }
  return nullptr;
}

/// The algorithm of what every rank reads at once, after one wait.
inline constexpr char kInOneStep[] = "one step";

}  // namespace runjob::runtime
