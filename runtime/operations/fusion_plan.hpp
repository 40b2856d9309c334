#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// The properties that allreduces must have in common to be run as one.
struct FusionKey {
  DType dtype = DType::kUint8, wire = DType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  double prescale = 1, postscale = 1;
  std::optional<std::size_t> group = {};  ///< the operation's index, when its tensors are fused with no others
  MemoryKind memory = MemoryKind::kHost;

  bool operator==(const FusionKey&) const = default;
};

/// A tensor to be reduced, or an operation of another kind.
struct FusionItem {
  std::size_t operation = 0;          ///< its index; the items of one operation follow each other
  std::size_t tensor = 0;             ///< the index of the tensor in the operation
  std::size_t bytes = 0;              ///< that are sent for it
  std::optional<FusionKey> key = {};  ///< nullopt when it is run alone
};

/// The sizes for tensors in host memory, which are copied into a buffer, and for tensors of a device, which are
/// launched as one where they lie.
struct FusionLimits {
  std::size_t buffer_bytes = 0;         ///< host: the most bytes that are run as one; 0 for no fusion
  std::size_t fuses_below = 0;          ///< host: larger tensors are run alone
  std::size_t device_launch_bytes = 0;  ///< device: the most bytes that are launched as one; 0 for no fusion
};

/// Groups `items` into batches that are run together, as indices, in the order of their first items. An item joins the
/// first batch of its key that has room for it, whatever items are between them. Tensors of one operation stay together
/// when they fit the buffer. Pure, so that all ranks come to the same plan from the same decisions.
/// Source  Horovod's Controller::FuseResponses, which looks ahead in the same way.
std::vector<std::vector<std::size_t>> plan_fusion(std::span<const FusionItem> items, const FusionLimits& limits);

}  // namespace runjob::runtime
