#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/engine/control_message.hpp"

namespace runjob::runtime {

/// All that running an operation takes but its buffers: the same each time that the ranks agree on it.
struct PreparedOperation {
  Call call;          ///< without buffers
  Shape result = {};  ///< of what has no buffer of the caller's; empty: there is none
  std::size_t result_bytes = 0;
  Shape received_splits = {};  ///< alltoall: rows from each rank
  /// Nothing for the backend to do: on every rank alike, whatever this one's part of it is.
  bool moves_nothing = false;
};

/// As rank `rank` of `size`. Not of a grouped operation, whose tensors are prepared one by one.
PreparedOperation prepare_operation(const Signature& signature, const Decision& decision, int rank, int size);

}  // namespace runjob::runtime
