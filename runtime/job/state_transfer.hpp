#pragma once

#include <cstddef>
#include <span>

#include "runtime/job/job.hpp"

namespace runjob::runtime {

/// Gives the state of rank 0 to the ranks that lack it. Ranks that have it take no part: they only wait until the
/// others are done, in a short operation for each piece of the state.
///
/// When all ranks lack it, it is broadcast in the whole job. Otherwise a small state goes in one alltoall, in which the
/// ranks that have it receive nothing, and a large one in a process set of the others, which exists meanwhile.
///
/// blocks   The memory of the state: read on rank 0, written on ranks that lack it. On other ranks only the sizes
///          count, and the memory is null. All ranks give the same number of blocks, of the same sizes.
/// lacks    True on a rank that is to receive; not looked at on rank 0.
/// Owner    the memory is lent until the call returns.
/// Threads  any; all ranks of the job make the call in the same order as their other operations.
/// Errors   Error: kMismatch on all ranks for other sizes; those of the operations; kConnect naming the rank that could
///          not connect with the others that take part. Of a loss every rank has an error, and a rank that was to
///          receive may have a part of the state.
/// Cost     one operation when no rank lacks the state. A process set costs two milliseconds where nothing else runs.
void transfer_state(const Job& job, std::span<const std::span<std::byte>> blocks, bool lacks);

}  // namespace runjob::runtime
