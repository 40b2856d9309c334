#pragma once

#include <cstddef>
#include <vector>

#include "runtime/collectives/nccl/nccl_abi.hpp"

/// Arithmetic of NCCL's stand-in: a plain loop over the ranks' values.
namespace stand_in {

/// A reduction; a factor other than 1 multiplies each input of a sum.
struct Operator {
  runjob::runtime::nccl::RedOp op = runjob::runtime::nccl::kSum;
  double factor = 1;
};

std::size_t bytes_of(runjob::runtime::nccl::DataType dtype);
/// One element as a number.
double value_of(runjob::runtime::nccl::DataType dtype, const void* element);
/// Reduces `count` elements of each of `inputs` into `out`, which is none of them.
void reduce(runjob::runtime::nccl::DataType dtype, const Operator& how, const std::vector<const char*>& inputs,
            char* out, std::size_t count);

}  // namespace stand_in
