#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// What allreduces must have in common to be run as one.
struct FusionKey {
  DType dtype = DType::kUint8, wire = DType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  double prescale = 1, postscale = 1;
  std::optional<std::size_t> group = {};  ///< an operation's number, when its tensors are to be with no others

  bool operator==(const FusionKey&) const = default;
};

/// A tensor to be reduced, or an operation of another kind.
struct FusionItem {
  std::size_t operation = 0;          ///< a number; the items of one operation follow each other
  std::size_t tensor = 0;             ///< which of its tensors
  std::size_t bytes = 0;              ///< as it travels
  std::optional<FusionKey> key = {};  ///< none: it is run alone
};

struct FusionLimits {
  std::size_t buffer_bytes = 0;  ///< the most that is run as one; 0: nothing is
  std::size_t fuses_below = 0;   ///< larger tensors are run alone
};

/// What is run together, as indices of `items`, in the order in which it is run: that of the first items. An item is put with the
/// first ones of its key that have room for it, whatever is between them. Tensors of one operation stay together when they fit
/// the buffer. Pure, so that all ranks come to the same plan from the same decisions.
/// Source  Horovod's Controller::FuseResponses, which looks ahead in the same way.
std::vector<std::vector<std::size_t>> plan_fusion(std::span<const FusionItem> items, const FusionLimits& limits);

}  // namespace runjob::runtime
