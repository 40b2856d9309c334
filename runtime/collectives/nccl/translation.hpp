#pragma once

#include <string>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/nccl/nccl_abi.hpp"

namespace runjob::runtime::nccl {

/// A call in NCCL's terms.
struct Terms {
  DataType dtype = kUint8;
  std::size_t per_value = 1;  ///< elements of `dtype` for each value of the call
  RedOp op = kSum;
  double factor = 1;  ///< unless 1: a sum whose inputs are multiplied by it, in place of `op`
};

/// Translates a call among `size` ranks. `objection` becomes the reason when NCCL's operators cannot express it, and
/// stays empty otherwise. Pure, and the same on all ranks.
Terms translate(const Call& call, int size, std::string& objection);

}  // namespace runjob::runtime::nccl
