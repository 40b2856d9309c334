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

/// The deadline of a C timeout. A negative timeout means no deadline.
Engine::Deadline to_deadline(double timeout_seconds);

/// See runjob_submit().
Status submit(const runjob_operation* operation, runjob_handle* handle);
/// See runjob_run(). `in_progress` becomes true when the operation is not done at the end of the timeout.
Status run(const runjob_operation* operation, double timeout_seconds, runjob_handle* handle, bool& in_progress);
/// See runjob_unnamed_count().
std::int64_t unnamed_count(int process_set);
/// Errors  Error(kNotInitialized) in a forked child and before any init, kInvalidArgument for an unknown handle.
std::shared_ptr<Completion> find(runjob_handle handle);
/// The result of a finished operation.
/// Errors  the operation's own; those of find(); kInvalidArgument when the operation is not done.
Status find_result(runjob_handle handle, std::shared_ptr<Completion>& completion);
/// Lends a result to the caller through the C interface's output arguments.
void give(const Completion::Result& result, const void** data, const int64_t** shape, int32_t* ndim);

/// Waits until an operation is done, and then for what `then(completion, deadline)` waits for; its result is the
/// outcome, nullopt for "not done yet", which becomes RUNJOB_IN_PROGRESS. A lost rank is reported to the launcher.
template <class Then>
runjob_code guarded_wait(runjob_handle handle, double timeout_seconds, Then then) noexcept {
  std::optional<Status> outcome;
  const runjob_code code = guarded([&] {
    const Engine::Deadline deadline = to_deadline(timeout_seconds);
    const auto completion = find(handle);
    const std::shared_ptr<OperationOwner> owner = Process::current().handles().owner(handle);
    // an operation without an owner is done
    outcome = owner ? owner->wait(*completion, deadline) : completion->wait(std::nullopt);
    if (outcome && outcome->ok()) outcome = then(*completion, deadline);
    if (outcome) Process::current().report_loss(*outcome);
    return outcome.value_or(Status());
  });
  return code == RUNJOB_OK && !outcome ? RUNJOB_IN_PROGRESS : code;
}

}  // namespace runjob::runtime
