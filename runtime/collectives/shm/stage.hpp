#pragma once

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// The timeline's name of an operation through shared memory; null for an operation that moves no data.
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

}  // namespace runjob::runtime
