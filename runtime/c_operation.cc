#include "runtime/c_operation.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/process.hpp"

namespace runjob::runtime {
namespace {

ReduceOp to_reduce_op(int32_t op) {
  if (!is_reduce_op(op)) throw Error(Errc::kInvalidArgument, fmt::format("{} is not a reduction", op));
  return static_cast<ReduceOp>(op);
}

/// The dtype in which values travel; null for the tensor's own.
std::optional<DType> to_wire(int32_t compression) {
  switch (compression) {
    case RUNJOB_COMPRESSION_NONE:
      return std::nullopt;
    case RUNJOB_COMPRESSION_FLOAT16:
      return DType::kFloat16;
    case RUNJOB_COMPRESSION_BFLOAT16:
      return DType::kBfloat16;
  }
  throw Error(Errc::kInvalidArgument, fmt::format("{} is not a compression", compression));
}

DType to_dtype(int32_t dtype) {
  if (!is_dtype(dtype)) throw Error(Errc::kInvalidArgument, fmt::format("{} is not a dtype", dtype));
  return static_cast<DType>(dtype);
}

ShapeView to_shape(const int64_t* shape, int32_t ndim) {
  if (ndim < 0 || (ndim > 0 && shape == nullptr)) {
    throw Error(Errc::kInvalidArgument, fmt::format("a shape of {} dimensions at {}", ndim, fmt::ptr(shape)));
  }
  return {shape, static_cast<std::size_t>(ndim)};
}

Kind to_kind(int32_t kind) {
  if (!is_kind(kind)) throw Error(Errc::kInvalidArgument, fmt::format("{} is not a kind of operation", kind));
  return static_cast<Kind>(kind);
}

bool is_reduction(Kind kind) {
  return kind == Kind::kAllreduce || kind == Kind::kReducescatter;
}

/// True if the operation writes into the caller's buffer, which must not be null then.
bool writes_in_place(Kind kind) {
  return kind == Kind::kAllreduce || kind == Kind::kBroadcast;
}

/// True if the operation leaves a result for which the caller gave no buffer.
bool has_result(Kind kind) {
  return kind == Kind::kReducescatter || kind == Kind::kJoin || has_own_first_extent(kind);
}

/// Everything except the tensors.
SubmissionView terms_of(const runjob_operation& operation) {
  SubmissionView terms;
  SignatureView& signature = terms.signature;
  signature.kind = to_kind(operation.kind);
  if (signature.kind == Kind::kJoin) {
    terms.name = kJoinName;
    return terms;
  }
  terms.name = operation.name == nullptr ? kUnnamed : std::string_view(operation.name);
  signature.process_set = operation.process_set;
  if (signature.kind == Kind::kBarrier) return terms;
  if (is_reduction(signature.kind)) {
    signature.op = to_reduce_op(operation.op);
    signature.prescale = operation.prescale;
    signature.postscale = operation.postscale;
    signature.wire = to_wire(operation.compression);
  }
  if (signature.kind == Kind::kBroadcast) signature.root = operation.root;
  if (!is_memory_kind(operation.memory))
    throw Error(Errc::kInvalidArgument, fmt::format("{} is not a kind of memory", operation.memory));
  signature.memory = static_cast<MemoryKind>(operation.memory);
  if (signature.memory == MemoryKind::kDevice) terms.device = {operation.device, operation.stream};
  return terms;
}

/// The buffers of a tensor. `name`: that of the tensor in messages.
/// Errors  Error(kInvalidArgument) for a buffer that is null although the tensor has elements.
GroupBuffers buffers_of(const runjob_tensor& tensor, ShapeView shape, Kind kind, const auto& name, int process_set) {
  const auto check = [&](const void* buffer, const char* which) {
    if (buffer != nullptr || element_count(shape) == 0) return;
    throw Error(Errc::kInvalidArgument,
                fmt::format("{}: {} is null", operation_text(name(), kind, process_set), which));
  };
  const bool has_room = tensor.output != nullptr && tensor.output_bytes > 0 && !writes_in_place(kind);
  const void* const input = kind == Kind::kBroadcast ? tensor.output : tensor.input;
  check(input, kind == Kind::kBroadcast ? "the buffer" : "the input");
  if (writes_in_place(kind)) check(tensor.output, "the output");
  return {input, tensor.output, has_room ? static_cast<std::size_t>(tensor.output_bytes) : 0};
}

void set_splits(SubmissionView& submission, const runjob_operation& operation) {
  if (operation.splits == nullptr) return;
  submission.signature.splits = to_shape(operation.splits, operation.nsplits);
  if (operation.nsplits == 0)
    throw Error(Errc::kInvalidArgument, fmt::format("alltoall {}: the splits are empty", name_text(submission.name)));
}

void set_tensor(SubmissionView& submission, const runjob_tensor& tensor) {
  SignatureView& signature = submission.signature;
  signature.shape = to_shape(tensor.shape, tensor.ndim);
  signature.dtype = to_dtype(tensor.dtype);
  const auto name = [&] { return submission.name; };
  const GroupBuffers buffers = buffers_of(tensor, signature.shape, signature.kind, name, signature.process_set);
  submission.input = buffers.input;
  submission.output = buffers.output;
  submission.output_bytes = buffers.output_bytes;
}

void set_group(SubmissionView& submission, std::span<const runjob_tensor> tensors) {
  SignatureView& signature = submission.signature;
  for (const runjob_tensor& tensor : tensors) {
    const ShapeView shape = to_shape(tensor.shape, tensor.ndim);
    const auto name = [&] { return tensor_name(submission.name, submission.group.size(), tensors.size()); };
    submission.group.push_back(buffers_of(tensor, shape, signature.kind, name, /*process_set=*/0));
    signature.group.push_back({to_dtype(tensor.dtype), Shape(shape.begin(), shape.end())});
  }
}

/// The operation in the engine's terms. Its name and shapes are lent from `operation`.
SubmissionView view_of(const runjob_operation& operation) {
  SubmissionView submission = terms_of(operation);
  const Kind kind = submission.signature.kind;
  if (kind == Kind::kJoin || kind == Kind::kBarrier) return submission;
  const bool is_group = operation.count > 1 || operation.is_group != 0;
  if (operation.count < 1 || operation.tensors == nullptr) {
    throw Error(Errc::kInvalidArgument,
                fmt::format("{} {}: {}{} tensors at {}", to_string(kind), name_text(submission.name),
                            is_group ? "a group of " : "", operation.count, fmt::ptr(operation.tensors)));
  }
  if (kind == Kind::kAlltoall) set_splits(submission, operation);
  if (is_group) {
    set_group(submission, {operation.tensors, static_cast<std::size_t>(operation.count)});
  } else {
    set_tensor(submission, *operation.tensors);
  }
  return submission;
}

/// The caller's struct, or where that is one of an older version, as much of it as there is in `copy`; the rest is
/// zero.
const runjob_operation& known_part_of(const runjob_operation* from, runjob_operation& copy) {
  if (from == nullptr || from->size < offsetof(runjob_operation, stream)) {
    throw Error(Errc::kInvalidArgument, "an operation needs a runjob_operation whose `size` is its size");
  }
  if (from->size >= sizeof copy) return *from;
  copy = {};
  std::memcpy(&copy, from, from->size);
  return copy;
}

/// Calls `use` with the engine of a process set, and returns its result. `what` returns the operation, for errors.
template <class Use>
auto with_engine(int process_set, const std::function<std::string()>& what, Use use) {
  return Process::current().with_job(
      [&](const Job& job) { return use(process_set == 0 ? job.engine : job.process_sets->find(process_set, what)); });
}

/// The same with the engine that runs the operation. Meanwhile the operation has its name among those of the engine.
template <class Use>
auto with_engine(SubmissionView& operation, Use use) {
  const int set = operation.signature.process_set;
  const std::string_view name = operation.name;
  const auto what = [&] { return operation_text(name, operation.signature.kind, 0); };
  return with_engine(set, what, [&](const std::shared_ptr<Engine>& engine) {
    if (set == 0 || engine->process_set() == set || is_unnamed(name)) return use(engine);
    const std::string full_name = name_in_set(name, set);
    operation.name = full_name;
    auto result = use(engine);
    operation.name = name;
    return result;
  });
}

void check_handle(const runjob_handle* handle) {
  if (handle == nullptr) throw Error(Errc::kInvalidArgument, "an operation needs somewhere to put its handle");
}

/// Throws when a result did not fill the caller's buffer exactly.
void check_room(const SubmissionView& submission, const Completion::Result& result) {
  const std::size_t element = size_of(submission.signature.dtype), needed = element_count(result.shape) * element;
  if (needed == submission.output_bytes) return;
  throw Error(Errc::kInvalidArgument, fmt::format("{}: the result has {} elements, the output {}",
                                                  operation_text(submission.name, submission.signature.kind, 0),
                                                  needed / element, submission.output_bytes / element));
}

/// Gives the caller a handle. An operation that was done at once gets a completion for it.
void leave_handle(const std::shared_ptr<Engine>& engine, Engine::Outcome& outcome, runjob_handle* handle) {
  if (!outcome.completion) {
    outcome.completion = std::make_shared<Completion>();
    outcome.completion->finish(outcome.status, std::move(outcome.result));
  }
  *handle = Process::current().handles().add(std::move(outcome.completion), engine);
}

}  // namespace

Status submit(const runjob_operation* operation, runjob_handle* handle) {
  runjob_operation copy;
  SubmissionView submission = view_of(known_part_of(operation, copy));
  check_handle(handle);
  *handle = with_engine(submission, [&](const std::shared_ptr<Engine>& engine) {
    return Process::current().handles().add(engine->submit(to_submission(submission)), engine);
  });
  return {};
}

Engine::Deadline to_deadline(double timeout_seconds) {
  constexpr double kLongest = 1e8;  // seconds, far below the largest duration that can be added to a clock
  if (std::isnan(timeout_seconds)) throw Error(Errc::kInvalidArgument, "the timeout is not a number");
  if (timeout_seconds < 0 || timeout_seconds > kLongest) return std::nullopt;
  return Engine::Clock::now() +
         std::chrono::duration_cast<Engine::Clock::duration>(std::chrono::duration<double>(timeout_seconds));
}

Status run(const runjob_operation* operation, double timeout_seconds, runjob_handle* handle, bool& in_progress) {
  runjob_operation copy;
  SubmissionView submission = view_of(known_part_of(operation, copy));
  const bool leaves_result = has_result(submission.signature.kind), fills_room = leaves_result && handle == nullptr;
  if (!(timeout_seconds < 0) || (fills_room && submission.output == nullptr)) check_handle(handle);
  if (handle != nullptr) *handle = 0;
  const Engine::Deadline deadline = to_deadline(timeout_seconds);
  Engine::Outcome outcome = with_engine(submission, [&](const std::shared_ptr<Engine>& engine) {
    Engine::Outcome result = engine->run(submission, deadline);
    if (result.completion && result.status.ok()) {  // a device may have something left to do
      const std::optional<Status> end = result.completion->wait_for_end(deadline);
      in_progress = !end;
      if (end) result.status = *end;
    }
    if (fills_room) {
      if (result.status.ok()) check_room(submission, result.completion ? result.completion->result() : result.result);
    } else if (in_progress || (leaves_result && result.status.ok())) {
      leave_handle(engine, result, handle);
    }
    return result;
  });
  if (outcome.status.ok()) return {};
  Process::current().report_loss(outcome.status);
  return std::move(outcome.status);
}

std::int64_t unnamed_count(int process_set) {
  const auto what = [] { return std::string("the number of operations without a name"); };
  return with_engine(process_set, what, [&](const std::shared_ptr<Engine>& engine) {
    return static_cast<std::int64_t>(engine->unnamed_count(process_set));
  });
}

std::shared_ptr<Completion> find(runjob_handle handle) {
  Process& process = Process::current();
  auto completion = process.handles().find(handle);
  if (completion) return completion;
  static_cast<void>(process.member_job());  // throws "not initialized", which is the better error
  throw Error(Errc::kInvalidArgument, fmt::format("{} is not a handle", handle));
}

Status find_result(runjob_handle handle, std::shared_ptr<Completion>& completion) {
  completion = find(handle);
  if (!completion->done()) throw Error(Errc::kInvalidArgument, "the operation is not done yet");
  return completion->wait(std::nullopt).value_or(Status());
}

void give(const Completion::Result& result, const void** data, const int64_t** shape, int32_t* ndim) {
  *data = result.data;
  *shape = result.shape.data();
  *ndim = static_cast<int32_t>(result.shape.size());
}

}  // namespace runjob::runtime
