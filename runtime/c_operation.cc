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

/// Null: as the tensor is.
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

/// What `use` does with the engine that runs such an operation.
template <class Use>
auto with_engine(const Submission& submission, Use use) {
  return Process::current().with_job([&](const Job& job) {
    const Signature& signature = submission.signature;
    if (signature.process_set == 0) return use(job.engine);
    return use(job.process_sets->find(signature.process_set, operation_text(submission.name, signature.kind, 0)));
  });
}

void check_handle(const runjob_handle* handle) {
  if (handle == nullptr) throw Error(Errc::kInvalidArgument, "an operation needs somewhere to put its handle");
}

/// Of a blocking operation, which needs none when it cannot leave anything.
void check_handle_of_blocking(const Submission& submission, bool fills_room, double timeout_seconds,
                              const runjob_handle* handle) {
  const bool leaves_nothing =
      timeout_seconds < 0 && !(fills_room && (submission.output == nullptr || !submission.group.empty()));
  if (!leaves_nothing) check_handle(handle);
}

/// The caller's room that a result is to fill, with what an error says of it.
struct Room {
  explicit Room(const Submission& submission)
      : name(submission.name),
        kind(submission.signature.kind),
        dtype(submission.signature.dtype),
        bytes(submission.output_bytes) {}

  void check(const Completion::Result& result) const {
    const std::size_t element = size_of(dtype), needed = element_count(result.shape) * element;
    if (needed == bytes) return;
    throw Error(Errc::kInvalidArgument, fmt::format("{}: the result has {} elements, the output {}",
                                                    operation_text(name, kind, 0), needed / element, bytes / element));
  }

  std::string name;
  Kind kind;
  DType dtype;
  std::size_t bytes;
};

}  // namespace

Shape to_shape(const int64_t* shape, int32_t ndim) {
  if (ndim < 0 || (ndim > 0 && shape == nullptr)) {
    throw Error(Errc::kInvalidArgument, fmt::format("a shape of {} dimensions at {}", ndim, fmt::ptr(shape)));
  }
  return Shape(shape, shape + ndim);
}

void check_buffer(const Submission& submission, const void* buffer, const char* which) {
  if (buffer != nullptr || element_count(submission.signature.shape) == 0) return;
  throw Error(Errc::kInvalidArgument,
              fmt::format("{}: {} is null", operation_text(submission.name, submission.signature), which));
}

void set_reduction(Submission& submission, runjob_reduce_op op, double prescale, double postscale,
                   runjob_compression compression) {
  submission.signature.op = to_reduce_op(op);
  submission.signature.prescale = prescale;
  submission.signature.postscale = postscale;
  submission.signature.wire = to_wire(compression);
}

void set_room(Submission& submission, void* output, int64_t output_bytes) {
  submission.output = output;
  submission.output_bytes = output == nullptr || output_bytes < 0 ? 0 : static_cast<std::size_t>(output_bytes);
}

Submission make_submission(const char* name, Kind kind, int32_t process_set) {
  if (name == nullptr) throw Error(Errc::kInvalidArgument, "an operation needs a name");
  Submission submission;
  submission.name = name;
  submission.signature.kind = kind;
  submission.signature.process_set = process_set;
  return submission;
}

Submission make_submission(const char* name, Kind kind, const int64_t* shape, int32_t ndim, runjob_dtype dtype,
                           int32_t process_set) {
  Submission submission = make_submission(name, kind, process_set);
  submission.signature.shape = to_shape(shape, ndim);
  submission.signature.dtype = to_dtype(dtype);
  return submission;
}

Status submit(Submission submission, runjob_handle* handle) {
  check_handle(handle);
  *handle = with_engine(submission, [&](const std::shared_ptr<Engine>& engine) {
    return Process::current().handles().add(engine->submit(std::move(submission)), engine);
  });
  return {};
}

Engine::Deadline to_deadline(double timeout_seconds) {
  constexpr double kLongest = 1e8;  // seconds, far inside what a clock can add
  if (std::isnan(timeout_seconds)) throw Error(Errc::kInvalidArgument, "the timeout is not a number");
  if (timeout_seconds < 0 || timeout_seconds > kLongest) return std::nullopt;
  return Engine::Clock::now() +
         std::chrono::duration_cast<Engine::Clock::duration>(std::chrono::duration<double>(timeout_seconds));
}

Status run(Submission&& submission, double timeout_seconds, runjob_handle* handle, bool& in_progress) {
  const Kind kind = submission.signature.kind;
  const bool has_result = kind == Kind::kReducescatter || kind == Kind::kJoin || has_own_first_extent(kind);
  const bool fills_room = has_result && handle == nullptr;
  check_handle_of_blocking(submission, fills_room, timeout_seconds, handle);
  if (handle != nullptr) *handle = 0;
  const std::optional<Room> room = fills_room ? std::optional<Room>(submission) : std::nullopt;
  const Engine::Deadline deadline = to_deadline(timeout_seconds);
  Status status;
  with_engine(submission, [&](const std::shared_ptr<Engine>& engine) {
    Completion::Result result;
    auto completion = engine->run(std::move(submission), deadline, status, result);
    in_progress = completion && !completion->done();
    if (room) {
      if (status.ok()) room->check(completion ? completion->result() : result);
    } else if (in_progress || (has_result && status.ok())) {
      if (!completion) {
        completion = std::make_shared<Completion>();
        completion->finish(status, std::move(result));
      }
      *handle = Process::current().handles().add(std::move(completion), engine);
    }
  });
  if (!status.ok()) Process::current().report_loss(status);
  return status;
}

std::shared_ptr<Completion> find(runjob_handle handle) {
  Process& process = Process::current();
  auto completion = process.handles().find(handle);
  if (completion) return completion;
  static_cast<void>(process.member_job());  // "not initialized" is the better error
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
