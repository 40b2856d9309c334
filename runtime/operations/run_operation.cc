#include "runtime/operations/run_operation.hpp"

#include <cstring>
#include <new>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

/// Sets the result of a join: the rank that joined last, an int32.
void keep_last_rank(const Decision& decision, Completion::Result& result) {
  const auto last = static_cast<std::int32_t>(decision.first_extents.at(0));
  result.shape = {1};
  result.bytes = Buffer(sizeof last);
  std::memcpy(result.bytes.get(), &last, sizeof last);
  result.data = result.bytes.get();
}

}  // namespace

Buffer allocate(const FindBuffers& buffers, MemoryKind kind, std::size_t bytes) {
  const std::shared_ptr<BufferAllocator> allocator = buffers ? buffers(kind) : nullptr;
  if (allocator) {
    if (Buffer buffer(allocator, bytes); buffer) return buffer;
    if (std::string why = allocator->shortage(bytes); !why.empty()) throw Error(Errc::kSystem, why);
  }
  if (kind != MemoryKind::kHost) throw std::bad_alloc();
  return Buffer(bytes);
}

Call call_without_buffers(const Signature& signature, std::size_t tensor) {
  Call call;
  call.kind = signature.kind;
  call.dtype = signature.group.empty() ? signature.dtype : signature.group[tensor].dtype;
  call.op = signature.op;
  call.prescale = signature.prescale;
  call.postscale = signature.postscale;
  call.memory.kind = signature.memory;
  return call;
}

Status refusal_of(DeviceBackend* backend, std::string_view name, const Signature& signature) {
  if (signature.wire) {
    return Status(Errc::kUnavailable, fmt::format("{}: values in {} cannot be compressed; convert them there",
                                                  operation_text(name, signature), to_string(signature.memory)));
  }
  if (signature.op == ReduceOp::kAdasum) {
    return Status(Errc::kUnavailable,
                  fmt::format("{}: the library has no Adasum of values in {}; copy them to the host's memory, or use "
                              "runjob.torch, which computes it there",
                              operation_text(name, signature), to_string(signature.memory)));
  }
  if (backend == nullptr) return {};
  const std::size_t count = tensor_count(signature);
  for (std::size_t tensor = 0; tensor < count; ++tensor) {
    const Shape& shape = signature.group.empty() ? signature.shape : signature.group[tensor].shape;
    if (!has_own_first_extent(signature.kind) && element_count(shape) == 0) continue;  // nothing is run
    const Status refusal = backend->refusal(call_without_buffers(signature, tensor));
    if (refusal.ok()) continue;
    const std::string which = count > 1 ? tensor_name(name, tensor, count) + ": " : "";
    return Status(refusal.code(), fmt::format("{}: {}{}", operation_text(name, signature), which, refusal.message()));
  }
  return {};
}

void lend_buffers(PreparedOperation& prepared, const void* input, void* output, std::size_t output_bytes,
                  Completion::Result& result, const FindBuffers& buffers) {
  Call& call = prepared.call;
  call.input = input;
  call.output = output;
  if (prepared.result.empty()) return;
  result.shape = prepared.result;
  result.received_splits = prepared.received_splits;
  if (output == nullptr || prepared.result_bytes > output_bytes) {
    const bool is_host = call.memory.kind == MemoryKind::kHost || prepared.result_bytes == 0;
    result.bytes = is_host ? Buffer(prepared.result_bytes) : allocate(buffers, call.memory.kind, prepared.result_bytes);
    call.output = result.bytes.get();
  }
  result.data = call.output;
}

Status run_operation(const DataPath& path, EngineTimeline& timeline, const Submission& submission,
                     const Decision& decision, int rank, int size, Completion::Result& result) {
  try {
    if (submission.signature.kind == Kind::kJoin) keep_last_rank(decision, result);
    PreparedOperation prepared = prepare_operation(submission.signature, decision, rank, size);
    if (prepared.result_bytes > (submission.output == nullptr ? 0 : submission.output_bytes))
      timeline.begin_activity(submission.name, "ALLOCATE_OUTPUT");
    lend_buffers(prepared, submission.input, submission.output, submission.output_bytes, result, path.buffers);
    timeline.end_activity(submission.name);
    prepared.call.memory.device = submission.device;
    prepared.call.work = submission.work;
    if (prepared.moves_nothing) return {};
    if (timeline.is_on()) {
      timeline.begin_activity(submission.name, "QUEUE");
      prepared.call.on_stage = [&timeline, name = submission.name](const char* stage, const char* algorithm) {
        timeline.end_activity(name);
        timeline.begin_activity(name, stage, algorithm);
      };
    }
    return path.run(prepared.call);
  } catch (const std::exception& error) {  // the other ranks cannot go on without this one
    return Status(Errc::kSystem,
                  fmt::format("{}: {}", operation_text(decision.name, submission.signature), error.what()));
  }
}

Status run_tensor(const DataPath& path, EngineTimeline& timeline, const Submission& group, std::size_t tensor,
                  const Decision& decision, int rank, int size, Completion::Result& result) {
  const GroupBuffers& buffers = group.group[tensor];
  const Submission alone{.name = group.name,
                         .signature = signature_of(group.signature, tensor),
                         .input = buffers.input,
                         .output = buffers.output,
                         .output_bytes = buffers.output_bytes,
                         .device = group.device,
                         .work = group.work};
  Decision of_tensor;
  of_tensor.name = decision.name;
  if (!decision.first_extents.empty()) {
    const auto first = decision.first_extents.begin() + static_cast<std::ptrdiff_t>(tensor) * size;
    of_tensor.first_extents.assign(first, first + size);
  }
  return run_operation(path, timeline, alone, of_tensor, rank, size, result);
}

}  // namespace runjob::runtime
