#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/engine/control_message.hpp"
#include "runtime/engine/handle_table.hpp"
#include "runtime/engine/submission.hpp"
#include "runtime/timeline/timeline.hpp"

namespace runjob::runtime {

/// Has `backend` do what all have agreed on, for rank `rank` of `size`, and blocks until it is done.
/// `result` gets what has no buffer of the caller's. `timeline` may be null.
/// Errors  values: the backend's; kSystem when there is no memory for the result.
Status run_operation(Backend& backend, Timeline* timeline, const Submission& submission, const Decision& decision,
                     int rank, int size, Completion::Result& result);

}  // namespace runjob::runtime
