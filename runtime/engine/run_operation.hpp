#pragma once

#include <functional>

#include "runtime/collectives/backend.hpp"
#include "runtime/engine/control_message.hpp"
#include "runtime/engine/handle_table.hpp"
#include "runtime/engine/prepared_operation.hpp"
#include "runtime/engine/submission.hpp"
#include "runtime/timeline/engine_timeline.hpp"

namespace runjob::runtime {

/// Runs a call and blocks until it is done.
using RunCall = std::function<Status(const Call&)>;

/// Runs the call that does what all have agreed on, for rank `rank` of `size`. `result` gets what has no buffer of the caller's.
/// Errors  values: run()'s; kSystem when there is no memory for the result.
Status run_operation(const RunCall& run, EngineTimeline& timeline, const Submission& submission,
                     const Decision& decision, int rank, int size, Completion::Result& result);
/// Lends the call of a prepared operation, which may be used again, the caller's buffers; makes room for a result that has none there.
/// Errors  std::bad_alloc.
void lend_buffers(PreparedOperation& prepared, const void* input, void* output, std::size_t output_bytes,
                  Completion::Result& result);
/// One of the tensors of a grouped operation.
Status run_tensor(const RunCall& run, EngineTimeline& timeline, const Submission& group, std::size_t tensor,
                  const Decision& decision, int rank, int size, Completion::Result& result);

}  // namespace runjob::runtime
