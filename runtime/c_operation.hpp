#pragma once

#include <memory>
#include <optional>
#include <runjob/runjob.h>

#include "runtime/c_status.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/process.hpp"

/// Functions that the files of the C interface share: they turn its arguments into an operation and pass that to the
/// engine of this process.
/// Errors  Error, unless noted otherwise; guarded() turns it into a code.
namespace runjob::runtime {

// Arguments.

ShapeView to_shape(const int64_t* shape, int32_t ndim);
SubmissionView view(const char* name, Kind kind, int32_t process_set);
SubmissionView view(const char* name, Kind kind, const int64_t* shape, int32_t ndim, runjob_dtype dtype,
                    int32_t process_set);
/// Throws when `buffer` is null although the operation has elements. The message calls the buffer `which`.
void check_buffer(const SubmissionView& submission, const void* buffer, const char* which);
void set_reduction(SubmissionView& submission, runjob_reduce_op op, double prescale, double postscale,
                   runjob_compression compression = RUNJOB_COMPRESSION_NONE);
/// Sets the caller's buffer for the result. The result is written there if it fits.
void set_room(SubmissionView& submission, void* output, int64_t output_bytes);
/// Makes the submission of a group. `terms` describes everything except the tensors.
Submission make_group(const SubmissionView& terms, const runjob_tensor* tensors, int32_t count);
/// The deadline of a C timeout. A negative timeout means no deadline.
Engine::Deadline to_deadline(double timeout_seconds);

// Operations.

Status submit(Submission submission, runjob_handle* handle);
Status submit(const SubmissionView& submission, runjob_handle* handle);
/// Submits and waits. Leaves a handle when the operation has a result or is not done; `in_progress` is true in the
/// latter case. If `handle` is null, the result must fill the caller's buffer exactly.
Status run(const SubmissionView& submission, double timeout_seconds, runjob_handle* handle, bool& in_progress);
/// The same for a group, whose results always need a handle.
Status run(Submission group, double timeout_seconds, runjob_handle* handle, bool& in_progress);
/// Errors  Error(kNotInitialized) in a forked child and before any init, kInvalidArgument for an unknown handle.
std::shared_ptr<Completion> find(runjob_handle handle);
/// The result of a finished operation.
/// Errors  the operation's own; those of find(); kInvalidArgument when the operation is not done.
Status find_result(runjob_handle handle, std::shared_ptr<Completion>& completion);
/// Lends a result to the caller through the C interface's output arguments.
void give(const Completion::Result& result, const void** data, const int64_t** shape, int32_t* ndim);

/// Submits and waits for the operation that `make` returns, and turns "not done yet" into RUNJOB_IN_PROGRESS.
template <class Make>
runjob_code guarded_run(Make make, double timeout_seconds, runjob_handle* handle) noexcept {
  bool in_progress = false;
  const runjob_code code = guarded([&] { return run(make(), timeout_seconds, handle, in_progress); });
  return code == RUNJOB_OK && in_progress ? RUNJOB_IN_PROGRESS : code;
}

/// Waits until an operation is done, and then for what `then(completion, deadline)` waits for; its result is the
/// outcome, nullopt for "not done yet", which becomes RUNJOB_IN_PROGRESS. A lost rank is reported to the launcher.
template <class Then>
runjob_code guarded_wait(runjob_handle handle, double timeout_seconds, Then then) noexcept {
  std::optional<Status> outcome;
  const runjob_code code = guarded([&] {
    const Engine::Deadline deadline = to_deadline(timeout_seconds);
    const auto completion = find(handle);
    const std::shared_ptr<Engine> engine = Process::current().handles().engine(handle);
    // an operation without an engine is done
    outcome = engine ? engine->wait(*completion, deadline) : completion->wait(std::nullopt);
    if (outcome && outcome->ok()) outcome = then(*completion, deadline);
    if (outcome) Process::current().report_loss(*outcome);
    return outcome.value_or(Status());
  });
  return code == RUNJOB_OK && !outcome ? RUNJOB_IN_PROGRESS : code;
}

}  // namespace runjob::runtime
