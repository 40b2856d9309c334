#include "runtime/operations/operation_runner.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/process/float_environment.hpp"
#include "runtime/operations/adasum.hpp"

namespace runjob::runtime {
namespace {

std::size_t count_of(const Signature& signature, std::size_t tensor) {
  const Shape& shape = signature.group.empty() ? signature.shape : signature.group[tensor].shape;
  return static_cast<std::size_t>(element_count(shape));
}

DType dtype_of(const Signature& signature, std::size_t tensor) {
  return signature.group.empty() ? signature.dtype : signature.group[tensor].dtype;
}

GroupBuffers buffers_of(const Submission& submission, std::size_t tensor) {
  if (!submission.group.empty()) return submission.group[tensor];
  return {submission.input, submission.output, submission.output_bytes};
}

Buffer allocate_zeros(const FindBuffers& buffers, MemoryKind kind, std::size_t bytes) {
  if (kind == MemoryKind::kHost) {
    Buffer buffer(bytes);
    std::memset(buffer.get(), 0, bytes);
    return buffer;
  }
  Buffer buffer = allocate(buffers, kind, bytes);
  buffers(kind)->clear(buffer.get(), bytes);
  return buffer;
}

/// Gives an operation of a rank that has joined zeros as its input. Errors  std::bad_alloc.
void provide_zeros(AgreedOperation& operation, const FindBuffers& buffers) {
  const Signature& signature = operation.submission->signature;
  std::vector<std::size_t> bytes;
  std::size_t sum = 0;
  for (std::size_t tensor = 0; tensor < tensor_count(signature); ++tensor) {
    bytes.push_back(count_of(signature, tensor) * size_of(dtype_of(signature, tensor)));
    sum += bytes.back();
  }
  operation.result->bytes = allocate_zeros(buffers, signature.memory, sum);
  std::byte* place = operation.result->bytes.get();
  operation.submission->input = operation.submission->output = place;
  operation.submission->group.clear();
  for (std::size_t tensor = 0; tensor < signature.group.size(); ++tensor) {
    operation.submission->group.push_back({place, place, 0});
    place += bytes[tensor];
  }
}

}  // namespace

OperationRunner::OperationRunner(DataPath path, EngineTimeline& timeline, int rank, int size,
                                 const FusionSettings& settings, const FusionAdvice& advice)
    : path_(std::move(path)),
      timeline_(timeline),
      rank_(rank),
      size_(size),
      limits_{std::min(settings.threshold_bytes, advice.buffer_bytes), advice.fuses_below, settings.threshold_bytes},
      mixes_groups_(settings.mixes_groups),
      most_compressed_(advice.buffer_bytes),
      buffer_(path_.buffers) {}

void OperationRunner::run(std::span<AgreedOperation> operations, const OnDone& on_done) {
  const DefaultFloatEnvironment same_on_all_ranks;
  constexpr std::size_t kFirst[] = {0};
  find_items(operations);
  for (const FusionItem& item : items_) ++operations[item.operation].left;
  if (items_.size() == 1) return run_batch(operations, kFirst, on_done);  // the plan would need memory
  for (const std::vector<std::size_t>& batch : plan_fusion(items_, limits_)) run_batch(operations, batch, on_done);
}

void OperationRunner::run_batch(std::span<AgreedOperation> operations, std::span<const std::size_t> batch,
                                const OnDone& on_done) {
  if (batch.size() > 1)
    log::debug("{} tensors are fused, the first one is of {}", batch.size(),
               name_text(operations[items_[batch.front()].operation].decision->name));
  const Status status = run(operations, batch);
  done_.clear();
  for (const std::size_t index : batch) {
    AgreedOperation& operation = operations[items_[index].operation];
    if (operation.status.ok()) operation.status = status;
    if (--operation.left == 0) done_.push_back(&operation);
  }
  on_done(done_);
}

/// The items of the operations; every operation has at least one.
void OperationRunner::find_items(std::span<AgreedOperation> operations) {
  items_.clear();
  for (std::size_t number = 0; number < operations.size(); ++number) {
    const Signature& signature = operations[number].submission->signature;
    const std::size_t before = items_.size();
    for (std::size_t tensor = 0; tensor < tensor_count(signature); ++tensor) {
      const std::size_t count = count_of(signature, tensor);
      if (signature.kind != Kind::kAllreduce || count == 0) continue;
      const DType dtype = dtype_of(signature, tensor);
      const DType wire = signature.memory == MemoryKind::kHost ? wire_dtype(dtype, signature.wire) : dtype;
      FusionKey key{dtype, wire, signature.op, signature.prescale, signature.postscale, {}, signature.memory};
      if (!mixes_groups_ && !signature.group.empty()) key.group = number;
      items_.push_back({number, tensor, count * size_of(wire), key});
    }
    if (items_.size() == before) items_.push_back({number, 0, 0, {}});
  }
}

Status OperationRunner::run(std::span<AgreedOperation> operations, std::span<const std::size_t> batch) {
  try {
    for (const std::size_t index : batch) begin(operations[items_[index].operation]);
    const FusionItem& first = items_[batch.front()];
    const bool is_compressed = first.key && first.key->wire != first.key->dtype;
    const bool is_adasum = first.key && first.key->op == ReduceOp::kAdasum;
    if (batch.size() == 1 && !is_compressed && !is_adasum)
      return run_alone(path_, operations[first.operation], first.tensor);
    if (first.key->memory != MemoryKind::kHost) return run_on_device(operations, batch);
    std::vector<FusedTensor> tensors;
    for (const std::size_t index : batch) {
      const FusionItem& item = items_[index];
      const Submission& submission = *operations[item.operation].submission;
      const GroupBuffers buffers = buffers_of(submission, item.tensor);
      tensors.push_back({&submission.name, buffers.input, buffers.output, count_of(submission.signature, item.tensor)});
    }
    if (is_adasum) return run_adasum(path_.run, timeline_, buffer_, *first.key, tensors, rank_, size_);
    return run_fused(path_.run, timeline_, buffer_, *first.key, tensors, most_compressed_);
  } catch (const std::exception& error) {  // the other ranks cannot go on without this one
    return Status(Errc::kSystem, fmt::format("an allreduce: {}", error.what()));
  }
}

/// Runs one tensor of an operation, or the whole operation when it is not divided.
Status OperationRunner::run_alone(const DataPath& path, AgreedOperation& operation, std::size_t tensor) {
  const Submission& submission = *operation.submission;
  if (submission.signature.group.empty())
    return run_operation(path, timeline_, submission, *operation.decision, rank_, size_, *operation.result);
  if (submission.signature.kind == Kind::kAllreduce)
    return run_tensor(path, timeline_, submission, tensor, *operation.decision, rank_, size_, *operation.result);
  const std::size_t count = tensor_count(submission.signature);
  operation.result->tensors.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    Status status =
        run_tensor(path, timeline_, submission, i, *operation.decision, rank_, size_, operation.result->tensors[i]);
    if (!status.ok()) return status;
  }
  return {};
}

/// Collects the calls of a batch, and runs them as one.
Status OperationRunner::run_on_device(std::span<AgreedOperation> operations, std::span<const std::size_t> batch) {
  std::vector<Call> calls;
  calls.reserve(batch.size());
  const DataPath collecting{[&calls](const Call& call) {
                              calls.push_back(call);
                              return Status();
                            },
                            path_.buffers};
  for (const std::size_t index : batch) {
    Status status = run_alone(collecting, operations[items_[index].operation], items_[index].tensor);
    if (!status.ok()) return status;
  }
  return path_.run_together(calls);
}

/// Begins an operation, once, before any of its items is run.
void OperationRunner::begin(AgreedOperation& operation) {
  if (operation.is_begun) return;
  operation.is_begun = true;
  timeline_.begin(operation.decision->name, operation.submission->signature.kind);
  const Submission& submission = *operation.submission;
  const bool has_buffers = submission.input != nullptr || !submission.group.empty();
  if (operation.decision->for_joined && !has_buffers) provide_zeros(operation, path_.buffers);
}

}  // namespace runjob::runtime
