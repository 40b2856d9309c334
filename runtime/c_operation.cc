#include "runtime/c_operation.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/process.hpp"

namespace runjob::runtime {
namespace {

ReduceOp to_reduce_op(runjob_reduce_op op) {
  if (!is_reduce_op(op)) {
    throw Error(Errc::kInvalidArgument, fmt::format("{} is not a reduction", static_cast<int>(op)));
  }
  return static_cast<ReduceOp>(op);
}

/// The dtype in which values travel; null for the tensor's own.
std::optional<DType> to_wire(runjob_compression compression) {
  switch (compression) {
    case RUNJOB_COMPRESSION_NONE:
      return std::nullopt;
    case RUNJOB_COMPRESSION_FLOAT16:
      return DType::kFloat16;
    case RUNJOB_COMPRESSION_BFLOAT16:
      return DType::kBfloat16;
  }
  throw Error(Errc::kInvalidArgument, fmt::format("{} is not a compression", static_cast<int>(compression)));
}

DType to_dtype(runjob_dtype dtype) {
  if (!is_dtype(dtype)) {
    throw Error(Errc::kInvalidArgument, fmt::format("{} is not a dtype", static_cast<int>(dtype)));
  }
  return static_cast<DType>(dtype);
}

/// Adds one tensor to a group. With `writes`, the operation writes into the caller's buffer, which must not be null.
void add_tensor(Submission& group, const runjob_tensor& tensor, const std::string& name, bool reads, bool writes) {
  SubmissionView alone =
      view(name.c_str(), group.signature.kind, tensor.shape, tensor.ndim, static_cast<runjob_dtype>(tensor.dtype), 0);
  set_room(alone, tensor.output, tensor.output_bytes);
  if (reads) check_buffer(alone, tensor.input, "the input");
  if (writes) check_buffer(alone, tensor.output, "the output");
  const ShapeView shape = alone.signature.shape;
  group.signature.group.push_back({alone.signature.dtype, Shape(shape.begin(), shape.end())});
  group.group.push_back({reads ? tensor.input : tensor.output, tensor.output, alone.output_bytes});
}

/// Calls `use` with the engine that runs `operation`, a Submission or a view of one, and returns its result.
template <class Operation, class Use>
auto with_engine(const Operation& operation, Use use) {
  return Process::current().with_job([&](const Job& job) {
    const int set = operation.signature.process_set;
    if (set == 0) return use(job.engine);
    return use(job.process_sets->find(set, operation_text(operation.name, operation.signature.kind, 0)));
  });
}

void check_handle(const runjob_handle* handle) {
  if (handle == nullptr) throw Error(Errc::kInvalidArgument, "an operation needs somewhere to put its handle");
}

/// True if the operation leaves a result for which the caller gave no buffer.
bool has_result(Kind kind) {
  return kind == Kind::kReducescatter || kind == Kind::kJoin || has_own_first_extent(kind);
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

ShapeView to_shape(const int64_t* shape, int32_t ndim) {
  if (ndim < 0 || (ndim > 0 && shape == nullptr)) {
    throw Error(Errc::kInvalidArgument, fmt::format("a shape of {} dimensions at {}", ndim, fmt::ptr(shape)));
  }
  return {shape, static_cast<std::size_t>(ndim)};
}

void check_buffer(const SubmissionView& submission, const void* buffer, const char* which) {
  if (buffer != nullptr || element_count(submission.signature.shape) == 0) return;
  const SignatureView& signature = submission.signature;
  throw Error(
      Errc::kInvalidArgument,
      fmt::format("{}: {} is null", operation_text(submission.name, signature.kind, signature.process_set), which));
}

void set_reduction(SubmissionView& submission, runjob_reduce_op op, double prescale, double postscale,
                   runjob_compression compression) {
  submission.signature.op = to_reduce_op(op);
  submission.signature.prescale = prescale;
  submission.signature.postscale = postscale;
  submission.signature.wire = to_wire(compression);
}

void set_room(SubmissionView& submission, void* output, int64_t output_bytes) {
  submission.output = output;
  submission.output_bytes = output == nullptr || output_bytes < 0 ? 0 : static_cast<std::size_t>(output_bytes);
}

SubmissionView view(const char* name, Kind kind, int32_t process_set) {
  if (name == nullptr) throw Error(Errc::kInvalidArgument, "an operation needs a name");
  SubmissionView submission;
  submission.name = name;
  submission.signature.kind = kind;
  submission.signature.process_set = process_set;
  return submission;
}

SubmissionView view(const char* name, Kind kind, const int64_t* shape, int32_t ndim, runjob_dtype dtype,
                    int32_t process_set) {
  SubmissionView submission = view(name, kind, process_set);
  submission.signature.shape = to_shape(shape, ndim);
  submission.signature.dtype = to_dtype(dtype);
  return submission;
}

Submission make_group(const SubmissionView& terms, const runjob_tensor* tensors, int32_t count) {
  const Kind kind = terms.signature.kind;
  if (count < 1 || tensors == nullptr) {
    throw Error(Errc::kInvalidArgument, fmt::format("{} '{}': a group of {} tensors at {}", to_string(kind), terms.name,
                                                    count, fmt::ptr(tensors)));
  }
  Submission group = to_submission(terms);
  const bool reads = kind != Kind::kBroadcast, writes = kind == Kind::kAllreduce || kind == Kind::kBroadcast;
  const auto size = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < size; ++i) add_tensor(group, tensors[i], tensor_name(terms.name, i, size), reads, writes);
  return group;
}

Status submit(Submission submission, runjob_handle* handle) {
  check_handle(handle);
  *handle = with_engine(submission, [&](const std::shared_ptr<Engine>& engine) {
    return Process::current().handles().add(engine->submit(std::move(submission)), engine);
  });
  return {};
}

Status submit(const SubmissionView& submission, runjob_handle* handle) {
  check_handle(handle);
  *handle = with_engine(submission, [&](const std::shared_ptr<Engine>& engine) {
    return Process::current().handles().add(engine->submit(submission), engine);
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

Status run(const SubmissionView& submission, double timeout_seconds, runjob_handle* handle, bool& in_progress) {
  const bool leaves_result = has_result(submission.signature.kind), fills_room = leaves_result && handle == nullptr;
  if (!(timeout_seconds < 0) || (fills_room && submission.output == nullptr)) check_handle(handle);
  if (handle != nullptr) *handle = 0;
  const Engine::Deadline deadline = to_deadline(timeout_seconds);
  Engine::Outcome outcome = with_engine(submission, [&](const std::shared_ptr<Engine>& engine) {
    Engine::Outcome result = engine->run(submission, deadline);
    in_progress = result.completion && !result.completion->done();
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

Status run(Submission group, double timeout_seconds, runjob_handle* handle, bool& in_progress) {
  const bool leaves_result = has_result(group.signature.kind);
  if (!(timeout_seconds < 0) || leaves_result) check_handle(handle);
  if (handle != nullptr) *handle = 0;
  const Engine::Deadline deadline = to_deadline(timeout_seconds);
  Status status;
  with_engine(group, [&](const std::shared_ptr<Engine>& engine) {
    Engine::Outcome outcome = engine->run(std::move(group), deadline);
    in_progress = !outcome.completion->done();
    if (in_progress || (leaves_result && outcome.status.ok())) leave_handle(engine, outcome, handle);
    status = std::move(outcome.status);
  });
  if (!status.ok()) Process::current().report_loss(status);
  return status;
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
