#include "runtime/engine/run_operation.hpp"

#include <cstring>

#include <fmt/format.h>

namespace runjob::runtime {
namespace {

/// The result of a join: the rank that joined last, an int32.
void keep_last_rank(const Decision& decision, Completion::Result& result) {
  const auto last = static_cast<std::int32_t>(decision.first_extents.at(0));
  result.shape = {1};
  result.bytes = std::make_unique<std::byte[]>(sizeof last);
  std::memcpy(result.bytes.get(), &last, sizeof last);
  result.data = result.bytes.get();
}

}  // namespace

void lend_buffers(PreparedOperation& prepared, const void* input, void* output, std::size_t output_bytes,
                  Completion::Result& result) {
  Call& call = prepared.call;
  call.input = input;
  call.output = output;
  if (prepared.result.empty()) return;
  result.shape = prepared.result;
  result.received_splits = prepared.received_splits;
  if (output == nullptr || prepared.result_bytes > output_bytes) {
    result.bytes = std::make_unique_for_overwrite<std::byte[]>(prepared.result_bytes);
    call.output = result.bytes.get();
  }
  result.data = call.output;
}

Status run_operation(const RunCall& run, EngineTimeline& timeline, const Submission& submission,
                     const Decision& decision, int rank, int size, Completion::Result& result) {
  try {
    if (submission.signature.kind == Kind::kJoin) keep_last_rank(decision, result);
    PreparedOperation prepared = prepare_operation(submission.signature, decision, rank, size);
    lend_buffers(prepared, submission.input, submission.output, submission.output_bytes, result);
    if (prepared.moves_nothing) return {};
    if (timeline.is_on()) {
      timeline.begin_activity(submission.name, "QUEUE");
      prepared.call.on_stage = [&timeline, name = submission.name](const char* stage, const char* algorithm) {
        timeline.end_activity(name);
        timeline.begin_activity(name, stage, algorithm);
      };
    }
    return run(prepared.call);
  } catch (const std::exception& error) {  // the others cannot go on without us
    return Status(Errc::kSystem,
                  fmt::format("{}: {}", operation_text(decision.name, submission.signature), error.what()));
  }
}

Status run_tensor(const RunCall& run, EngineTimeline& timeline, const Submission& group, std::size_t tensor,
                  const Decision& decision, int rank, int size, Completion::Result& result) {
  const GroupBuffers& buffers = group.group[tensor];
  const Submission alone{group.name, signature_of(group.signature, tensor), buffers.input, buffers.output,
                         buffers.output_bytes};
  Decision of_tensor;
  of_tensor.name = decision.name;
  if (!decision.first_extents.empty()) {
    const auto first = decision.first_extents.begin() + static_cast<std::ptrdiff_t>(tensor) * size;
    of_tensor.first_extents.assign(first, first + size);
  }
  return run_operation(run, timeline, alone, of_tensor, rank, size, result);
}

}  // namespace runjob::runtime
