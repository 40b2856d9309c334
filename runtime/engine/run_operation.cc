#include "runtime/engine/run_operation.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

namespace runjob::runtime {
namespace {

void make_room(Completion::Result& result, const Submission& submission, std::int64_t rows, Call& call) {
  result.shape = submission.signature.shape;
  result.shape.front() = rows;
  const auto bytes = static_cast<std::size_t>(element_count(result.shape)) * size_of(call.dtype);
  if (submission.output == nullptr || bytes > submission.output_bytes) {
    result.bytes = std::make_unique_for_overwrite<std::byte[]>(bytes);
    call.output = result.bytes.get();
  }
  result.data = call.output;
}

/// The parts of those operations that have a part for, or of, each rank; and room for their results.
void divide(const Submission& submission, const Decision& decision, int rank, int size, Call& call,
            Completion::Result& result) {
  const Signature& signature = submission.signature;
  const auto ranks = static_cast<std::size_t>(size), own = static_cast<std::size_t>(rank);
  Shape rows;  // of each rank: gathered from it, received from it, or scattered to it
  if (signature.kind == Kind::kAllgather) rows = decision.first_extents;
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    if (signature.kind == Kind::kAlltoall) rows.push_back(decision.first_extents.at(peer * ranks + own));
    if (signature.kind == Kind::kReducescatter)
      rows.push_back(scattered_rows(signature.shape.front(), static_cast<int>(peer), size));
  }
  const std::int64_t row_count = element_count(Shape(signature.shape.begin() + 1, signature.shape.end()));
  for (const std::int64_t each : rows) call.counts.push_back(static_cast<std::size_t>(each * row_count));
  for (const std::int64_t each : signature.splits)
    call.send_counts.push_back(static_cast<std::size_t>(each * row_count));
  if (signature.kind == Kind::kAlltoall)
    call.largest_part = static_cast<std::size_t>(
        row_count * *std::max_element(decision.first_extents.begin(), decision.first_extents.end()));
  const std::int64_t sum = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  make_room(result, submission, signature.kind == Kind::kReducescatter ? rows[own] : sum, call);
  if (signature.kind == Kind::kAlltoall) result.received_splits = std::move(rows);
}

/// Whether there is nothing for the backend to do: on every rank alike, whatever this one's part of it is.
bool moves_nothing(const Signature& signature, const Decision& decision) {
  if (signature.kind == Kind::kBarrier || signature.kind == Kind::kJoin) return true;
  if (!has_own_first_extent(signature.kind)) return element_count(signature.shape) == 0;
  const auto has_rows = [](std::int64_t rows) { return rows != 0; };
  const bool rows = std::any_of(decision.first_extents.begin(), decision.first_extents.end(), has_rows);
  return !rows || element_count(Shape(signature.shape.begin() + 1, signature.shape.end())) == 0;
}

Call prepare_call(const Submission& submission, const Decision& decision, int rank, int size,
                  Completion::Result& result) {
  const Signature& signature = submission.signature;
  Call call{.kind = signature.kind,
            .dtype = signature.dtype,
            .op = signature.op,
            .root = signature.root,
            .prescale = signature.prescale,
            .postscale = signature.postscale,
            .input = submission.input,
            .output = submission.output,
            .count = static_cast<std::size_t>(element_count(signature.shape)),
            .counts = {},
            .send_counts = {},
            .largest_part = 0,
            .on_stage = nullptr};
  if (has_own_first_extent(signature.kind) || signature.kind == Kind::kReducescatter) {
    divide(submission, decision, rank, size, call, result);
  }
  return call;
}

/// The result of a join: the rank that joined last, an int32.
void keep_last_rank(const Decision& decision, Completion::Result& result) {
  const auto last = static_cast<std::int32_t>(decision.first_extents.at(0));
  result.shape = {1};
  result.bytes = std::make_unique<std::byte[]>(sizeof last);
  std::memcpy(result.bytes.get(), &last, sizeof last);
  result.data = result.bytes.get();
}

}  // namespace

Status run_operation(const RunCall& run, EngineTimeline& timeline, const Submission& submission,
                     const Decision& decision, int rank, int size, Completion::Result& result) {
  try {
    if (submission.signature.kind == Kind::kJoin) keep_last_rank(decision, result);
    Call call = prepare_call(submission, decision, rank, size, result);
    if (moves_nothing(submission.signature, decision)) return {};
    if (timeline.is_on()) {
      timeline.begin_activity(decision.name, "QUEUE");
      call.on_stage = [&timeline, name = submission.name](const char* stage, const char* algorithm) {
        timeline.end_activity(name);
        timeline.begin_activity(name, stage, algorithm);
      };
    }
    return run(call);
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
