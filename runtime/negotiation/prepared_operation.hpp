#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/negotiation/control_message.hpp"

namespace runjob::runtime {

/// An agreed operation without its buffers: the same each time that the ranks agree on it.
struct PreparedOperation {
  Call call;          ///< without buffers
  Shape result = {};  ///< the shape of a result without a buffer of the caller's; empty for none
  std::size_t result_bytes = 0;
  Shape received_splits = {};  ///< alltoall and allgather: rows from each rank
  /// The backend has nothing to do on any rank, whatever this rank's part is.
  bool moves_nothing = false;
};

/// Prepares an operation for rank `rank` of `size`. The tensors of a grouped operation are prepared one by one.
PreparedOperation prepare_operation(const Signature& signature, const Decision& decision, int rank, int size);

}  // namespace runjob::runtime
