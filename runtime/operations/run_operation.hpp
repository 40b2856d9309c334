#pragma once

#include <functional>
#include <span>

#include "runtime/collectives/device_backend.hpp"
#include "runtime/negotiation/control_message.hpp"
#include "runtime/negotiation/prepared_operation.hpp"
#include "runtime/negotiation/submission.hpp"
#include "runtime/operations/handle_table.hpp"
#include "runtime/timeline/engine_timeline.hpp"

namespace runjob::runtime {

/// Runs a call and blocks until it is done.
using RunCall = std::function<Status(const Call&)>;
/// Runs several calls of a device that have all but their tensors in common.
using RunTogether = std::function<Status(std::span<const Call>)>;
/// Returns the allocator for a kind of memory; null for ordinary memory of the host.
using FindBuffers = std::function<std::shared_ptr<BufferAllocator>(MemoryKind)>;

/// What operations run on: the backend's run(), or what replaces it, and the backend's memory.
struct DataPath {
  RunCall run;
  FindBuffers buffers = {};       ///< empty: all results lie in ordinary memory of the host
  RunTogether run_together = {};  ///< needed for tensors of a device
};

/// Runs an agreed operation on rank `rank` of `size`. A result without a buffer of the caller
/// goes into memory of `path`, which `result` owns.
/// Errors  values: run()'s; kSystem when there is no memory for the result.
Status run_operation(const DataPath& path, EngineTimeline& timeline, const Submission& submission,
                     const Decision& decision, int rank, int size, Completion::Result& result);
/// The call that runs one of its tensors, without buffers: enough to ask a backend about it.
Call call_without_buffers(const Signature& signature, std::size_t tensor);
/// The reason why no rank runs an operation on a device, on which all have agreed; OK if they do. See
/// DeviceBackend::refusal(). `backend`: null where it cannot be made, so that the operation's run fails.
Status refusal_of(DeviceBackend* backend, std::string_view name, const Signature& signature);
/// Sets the buffers of a prepared operation's call, which may be used again, to the caller's; allocates a buffer for a
/// result that has none there.
/// Errors  std::bad_alloc.
void lend_buffers(PreparedOperation& prepared, const void* input, void* output, std::size_t output_bytes,
                  Completion::Result& result, const FindBuffers& buffers = {});
/// Runs one of the tensors of a grouped operation.
Status run_tensor(const DataPath& path, EngineTimeline& timeline, const Submission& group, std::size_t tensor,
                  const Decision& decision, int rank, int size, Completion::Result& result);
/// Memory of this kind: of `buffers`, where that has an allocator, else the host's.
/// Errors  std::bad_alloc, also when there is no allocator for memory of a device; Error(kSystem) with its reason.
Buffer allocate(const FindBuffers& buffers, MemoryKind kind, std::size_t bytes);

}  // namespace runjob::runtime
