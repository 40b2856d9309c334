#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// The buffers of one tensor of a group.
struct GroupBuffers {
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t output_bytes = 0;
};

/// One operation as its caller submits it. The buffers are lent until its Completion is done.
struct Submission {
  std::string name;
  Signature signature;
  const void* input = nullptr;
  /// Of allgather, alltoall and reducescatter: room for the result, which belongs to the Completion when it does not fit.
  void* output = nullptr;
  std::size_t output_bytes = 0;
  std::vector<GroupBuffers> group = {};  ///< of a grouped operation, in place of these three
};

}  // namespace runjob::runtime
