#include <algorithm>
#include <cstring>
#include <runjob/runjob.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/c_operation.hpp"
#include "runtime/process.hpp"

/// The C interface's operations as one struct, and those on GPUs. No logic, as in c_api.cc.

namespace {

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

/// As much of the caller's struct as it has; the rest is zero.
runjob_operation copy_of(const runjob_operation* from) {
  if (from == nullptr || from->size < offsetof(runjob_operation, stream)) {
    throw Error(Errc::kInvalidArgument, "an operation needs a runjob_operation whose `size` is its size");
  }
  runjob_operation operation{};
  std::memcpy(&operation, from, std::min(from->size, sizeof operation));
  return operation;
}

Kind kind_of(const runjob_operation& operation) {
  const bool is_known = is_kind(operation.kind) && static_cast<Kind>(operation.kind) != Kind::kJoin &&
                        static_cast<Kind>(operation.kind) != Kind::kBarrier;
  if (is_known) return static_cast<Kind>(operation.kind);
  throw Error(Errc::kInvalidArgument, fmt::format("{} is not a kind of operation", operation.kind));
}

bool writes_in_place(Kind kind) {
  return kind == Kind::kAllreduce || kind == Kind::kBroadcast;
}

/// Everything except the tensors.
SubmissionView terms_of(const runjob_operation& operation) {
  const Kind kind = kind_of(operation);
  SubmissionView terms = view(operation.name, kind, operation.process_set);
  if (kind == Kind::kAllreduce || kind == Kind::kReducescatter) {
    set_reduction(terms, static_cast<runjob_reduce_op>(operation.op), operation.prescale, operation.postscale,
                  static_cast<runjob_compression>(operation.compression));
  }
  if (kind == Kind::kBroadcast) terms.signature.root = operation.root;
  if (!is_memory_kind(operation.memory))
    throw Error(Errc::kInvalidArgument, fmt::format("{} is not a kind of memory", operation.memory));
  terms.signature.memory = static_cast<MemoryKind>(operation.memory);
  if (terms.signature.memory == MemoryKind::kDevice) terms.device = {operation.device, operation.stream};
  return terms;
}

/// Sets the tensor of an operation that is not grouped.
void set_tensor(SubmissionView& submission, const runjob_operation& operation) {
  const runjob_tensor& tensor = operation.tensors[0];
  const Kind kind = submission.signature.kind;
  const SubmissionView alone = view(operation.name, kind, tensor.shape, tensor.ndim,
                                    static_cast<runjob_dtype>(tensor.dtype), operation.process_set);
  submission.signature.shape = alone.signature.shape;
  submission.signature.dtype = alone.signature.dtype;
  submission.input = kind == Kind::kBroadcast ? tensor.output : tensor.input;
  set_room(submission, tensor.output, tensor.output_bytes);
  if (writes_in_place(kind)) submission.output_bytes = 0;
  if (kind == Kind::kAlltoall && operation.splits != nullptr) {
    submission.signature.splits = to_shape(operation.splits, operation.nsplits);
    if (operation.nsplits == 0)
      throw Error(Errc::kInvalidArgument, fmt::format("alltoall '{}': the splits are empty", operation.name));
  }
  check_buffer(submission, submission.input, kind == Kind::kBroadcast ? "the buffer" : "the input");
  if (writes_in_place(kind)) check_buffer(submission, submission.output, "the output");
}

Status submit_operation(const runjob_operation& operation, runjob_handle* handle) {
  SubmissionView submission = terms_of(operation);
  if (operation.count < 1 || operation.tensors == nullptr) {
    throw Error(Errc::kInvalidArgument, fmt::format("{} '{}': {} tensors at {}", to_string(submission.signature.kind),
                                                    operation.name, operation.count, fmt::ptr(operation.tensors)));
  }
  if (operation.count > 1 || operation.is_group != 0)
    return submit(make_group(submission, operation.tensors, operation.count), handle);
  set_tensor(submission, operation);
  return submit(submission, handle);
}

}  // namespace

runjob_code runjob_submit(const runjob_operation* operation, runjob_handle* handle) {
  return guarded([&] { return submit_operation(copy_of(operation), handle); });
}

runjob_code runjob_check(double timeout_seconds) {
  bool is_in_flight = false;
  const runjob_code code = guarded([&] {
    const Engine::Deadline deadline = to_deadline(timeout_seconds);
    const std::shared_ptr<const Job> job = Process::current().member_job();
    std::vector<std::shared_ptr<Engine>> engines = job->process_sets->engines();
    engines.push_back(job->engine);
    Status failed;
    for (const auto& engine : engines) {
      const std::optional<Status> outcome = engine->settle(deadline);
      is_in_flight = is_in_flight || !outcome;
      if (outcome && failed.ok()) failed = *outcome;
    }
    Process::current().report_loss(failed);
    return failed;
  });
  return code == RUNJOB_OK && is_in_flight ? RUNJOB_IN_PROGRESS : code;
}

runjob_code runjob_wait_on_stream(runjob_handle handle, void* stream, double timeout_seconds) {
  return guarded_wait(handle, timeout_seconds,
                      [stream](Completion& completion, const Engine::Deadline& /*deadline*/) -> std::optional<Status> {
                        return completion.work() ? completion.work()->wait_on(stream) : Status();
                      });
}
