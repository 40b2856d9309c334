#pragma once

#include <span>

#include "runtime/operations/fused_allreduce.hpp"

namespace runjob::runtime {

/// Runs the allreduce kAdasum of all `tensors`, which have `key` in common, on rank `rank` of `size`, by collectives
/// that every backend has. Each tensor is cut by itself into a slice for each rank. An alltoall gives each rank its
/// slice of all ranks' tensors. An allreduce adds up the slices' dot products, from which the factors follow. An
/// allgather collects the sums of the slices. So a tensor has the same bits alone and with others.
///
/// Scaling  prescale and postscale become part of the factors. Compressed values are scaled as run_fused() does.
/// Memory   one uncompressed tensor: its size, in `buffer`. Several, or compressed ones: twice the size that is sent.
///          And `size` squared float64 for each.
/// Cost     the bytes of an alltoall and an allgather of all tensors; each rank computes its slices' dot products.
/// Blocks.
/// Errors   values: run()'s; kSystem without memory.
Status run_adasum(const RunCall& run, EngineTimeline& timeline, FusionBuffer& buffer, const FusionKey& key,
                  std::span<const FusedTensor> tensors, int rank, int size);

}  // namespace runjob::runtime
