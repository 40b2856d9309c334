#include <algorithm>
#include <runjob/runjob.h>
#include <string>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "runtime/c_operation.hpp"
#include "runtime/c_status.hpp"
#include "runtime/collectives/backend_registry.hpp"
#include "runtime/process.hpp"

/// The C interface: turns C arguments into values and everything thrown into a code and a text. No logic.

namespace {

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

/// Lent to the caller until its next call in the same thread.
thread_local std::string last_document;

/// A property of this rank's place; -1 when not initialised.
template <class Property>
int place(Property property) noexcept {
  const std::shared_ptr<const Job> job = Process::current().job();
  return job ? property(job->place) : -1;
}

Submission make_allreduce(const char* name, const void* input, void* output, const int64_t* shape, int32_t ndim,
                          runjob_dtype dtype, runjob_reduce_op op, double prescale, double postscale,
                          int32_t process_set) {
  Submission submission = make_submission(name, Kind::kAllreduce, process_set);
  submission.signature.shape = to_shape(shape, ndim);
  submission.signature.dtype = to_dtype(dtype);
  set_reduction(submission, op, prescale, postscale);
  submission.input = input;
  submission.output = output;
  check_buffer(submission, input, "the input");
  check_buffer(submission, output, "the output");
  return submission;
}

Submission make_broadcast(const char* name, void* buffer, const int64_t* shape, int32_t ndim, runjob_dtype dtype,
                          int32_t root, int32_t process_set) {
  Submission submission = make_submission(name, Kind::kBroadcast, process_set);
  submission.signature.shape = to_shape(shape, ndim);
  submission.signature.dtype = to_dtype(dtype);
  submission.signature.root = root;
  submission.input = submission.output = buffer;
  check_buffer(submission, buffer, "the buffer");
  return submission;
}

Submission make_allgather(const char* name, const void* input, void* output, int64_t output_bytes, const int64_t* shape,
                          int32_t ndim, runjob_dtype dtype, int32_t process_set) {
  Submission submission = make_submission(name, Kind::kAllgather, process_set);
  submission.signature.shape = to_shape(shape, ndim);
  submission.signature.dtype = to_dtype(dtype);
  submission.input = input;
  set_room(submission, output, output_bytes);
  check_buffer(submission, input, "the input");
  return submission;
}

Submission make_alltoall(const char* name, const void* input, void* output, int64_t output_bytes, const int64_t* shape,
                         int32_t ndim, const int64_t* splits, int32_t nsplits, runjob_dtype dtype,
                         int32_t process_set) {
  Submission submission = make_submission(name, Kind::kAlltoall, process_set);
  submission.signature.shape = to_shape(shape, ndim);
  submission.signature.dtype = to_dtype(dtype);
  if (splits != nullptr) {
    submission.signature.splits = to_shape(splits, nsplits);
    if (nsplits == 0) throw Error(Errc::kInvalidArgument, fmt::format("alltoall '{}': the splits are empty", name));
  }
  submission.input = input;
  set_room(submission, output, output_bytes);
  check_buffer(submission, input, "the input");
  return submission;
}

Submission make_reducescatter(const char* name, const void* input, void* output, int64_t output_bytes,
                              const int64_t* shape, int32_t ndim, runjob_dtype dtype, runjob_reduce_op op,
                              double prescale, double postscale, int32_t process_set) {
  Submission submission = make_submission(name, Kind::kReducescatter, process_set);
  submission.signature.shape = to_shape(shape, ndim);
  submission.signature.dtype = to_dtype(dtype);
  set_reduction(submission, op, prescale, postscale);
  submission.input = input;
  set_room(submission, output, output_bytes);
  check_buffer(submission, input, "the input");
  return submission;
}

Submission make_barrier(const char* name, int32_t process_set) {
  Submission submission = make_submission(name, Kind::kBarrier, process_set);
  return submission;
}

}  // namespace

const char* runjob_version(void) {
  return runjob::kVersion;
}

const char* runjob_error_message(void) {
  return last_message();
}

runjob_code runjob_init(void) {
  return guarded([] {
    Process::current().init(runjob::current_environment());
    return Status();
  });
}

runjob_code runjob_shutdown(void) {
  return guarded([] {
    Process::current().shutdown();
    return Status();
  });
}

runjob_code runjob_failing(const char* reason) {
  return guarded([&] {
    const std::shared_ptr<const Job> job = Process::current().job();
    if (job && job->failure_report) job->failure_report->failing(reason == nullptr ? "" : reason);
    return Status();
  });
}

int runjob_is_initialized(void) {
  return Process::current().job() ? 1 : 0;
}

int runjob_rank(void) {
  return place([](const auto& p) { return p.rank; });
}
int runjob_size(void) {
  return place([](const auto& p) { return p.size; });
}
int runjob_local_rank(void) {
  return place([](const auto& p) { return p.local_rank; });
}
int runjob_local_size(void) {
  return place([](const auto& p) { return p.local_size; });
}
int runjob_cross_rank(void) {
  return place([](const auto& p) { return p.cross_rank; });
}
int runjob_cross_size(void) {
  return place([](const auto& p) { return p.cross_size; });
}

int runjob_is_homogeneous(void) {
  return place([](const auto& p) {
    const auto of_first = std::count(p.hosts.begin(), p.hosts.end(), p.hosts.front());
    return std::all_of(p.hosts.begin(), p.hosts.end(),
                       [&](int host) { return std::count(p.hosts.begin(), p.hosts.end(), host) == of_first; })
               ? 1
               : 0;
  });
}

runjob_code runjob_allreduce_async(const char* name, const void* input, void* output, const int64_t* shape,
                                   int32_t ndim, runjob_dtype dtype, runjob_reduce_op op, double prescale,
                                   double postscale, int32_t process_set, runjob_handle* handle) {
  return guarded([&] {
    return submit(make_allreduce(name, input, output, shape, ndim, dtype, op, prescale, postscale, process_set),
                  handle);
  });
}

runjob_code runjob_allreduce(const char* name, const void* input, void* output, const int64_t* shape, int32_t ndim,
                             runjob_dtype dtype, runjob_reduce_op op, double prescale, double postscale,
                             int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  return guarded_run(
      [&] { return make_allreduce(name, input, output, shape, ndim, dtype, op, prescale, postscale, process_set); },
      timeout_seconds, handle);
}

runjob_code runjob_broadcast_async(const char* name, void* buffer, const int64_t* shape, int32_t ndim,
                                   runjob_dtype dtype, int32_t root, int32_t process_set, runjob_handle* handle) {
  return guarded([&] { return submit(make_broadcast(name, buffer, shape, ndim, dtype, root, process_set), handle); });
}

runjob_code runjob_broadcast(const char* name, void* buffer, const int64_t* shape, int32_t ndim, runjob_dtype dtype,
                             int32_t root, int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  return guarded_run([&] { return make_broadcast(name, buffer, shape, ndim, dtype, root, process_set); },
                     timeout_seconds, handle);
}

runjob_code runjob_allgather_async(const char* name, const void* input, void* output, int64_t output_bytes,
                                   const int64_t* shape, int32_t ndim, runjob_dtype dtype, int32_t process_set,
                                   runjob_handle* handle) {
  return guarded([&] {
    return submit(make_allgather(name, input, output, output_bytes, shape, ndim, dtype, process_set), handle);
  });
}

runjob_code runjob_allgather(const char* name, const void* input, void* output, int64_t output_bytes,
                             const int64_t* shape, int32_t ndim, runjob_dtype dtype, int32_t process_set,
                             double timeout_seconds, runjob_handle* handle) {
  return guarded_run([&] { return make_allgather(name, input, output, output_bytes, shape, ndim, dtype, process_set); },
                     timeout_seconds, handle);
}

runjob_code runjob_alltoall_async(const char* name, const void* input, void* output, int64_t output_bytes,
                                  const int64_t* shape, int32_t ndim, const int64_t* splits, int32_t nsplits,
                                  runjob_dtype dtype, int32_t process_set, runjob_handle* handle) {
  return guarded([&] {
    return submit(make_alltoall(name, input, output, output_bytes, shape, ndim, splits, nsplits, dtype, process_set),
                  handle);
  });
}

runjob_code runjob_alltoall(const char* name, const void* input, void* output, int64_t output_bytes,
                            const int64_t* shape, int32_t ndim, const int64_t* splits, int32_t nsplits,
                            runjob_dtype dtype, int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  return guarded_run(
      [&] {
        return make_alltoall(name, input, output, output_bytes, shape, ndim, splits, nsplits, dtype, process_set);
      },
      timeout_seconds, handle);
}

runjob_code runjob_reducescatter_async(const char* name, const void* input, void* output, int64_t output_bytes,
                                       const int64_t* shape, int32_t ndim, runjob_dtype dtype, runjob_reduce_op op,
                                       double prescale, double postscale, int32_t process_set, runjob_handle* handle) {
  return guarded([&] {
    return submit(
        make_reducescatter(name, input, output, output_bytes, shape, ndim, dtype, op, prescale, postscale, process_set),
        handle);
  });
}

runjob_code runjob_reducescatter(const char* name, const void* input, void* output, int64_t output_bytes,
                                 const int64_t* shape, int32_t ndim, runjob_dtype dtype, runjob_reduce_op op,
                                 double prescale, double postscale, int32_t process_set, double timeout_seconds,
                                 runjob_handle* handle) {
  return guarded_run(
      [&] {
        return make_reducescatter(name, input, output, output_bytes, shape, ndim, dtype, op, prescale, postscale,
                                  process_set);
      },
      timeout_seconds, handle);
}

runjob_code runjob_barrier_async(const char* name, int32_t process_set, runjob_handle* handle) {
  return guarded([&] { return submit(make_barrier(name, process_set), handle); });
}

runjob_code runjob_barrier(const char* name, int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  return guarded_run([&] { return make_barrier(name, process_set); }, timeout_seconds, handle);
}

runjob_code runjob_join_async(runjob_handle* handle) {
  return guarded([&] { return submit(make_submission(kJoinName, Kind::kJoin, 0), handle); });
}

runjob_code runjob_join(double timeout_seconds, runjob_handle* handle) {
  return guarded_run([&] { return make_submission(kJoinName, Kind::kJoin, 0); }, timeout_seconds, handle);
}

int runjob_poll(runjob_handle handle) {
  const std::shared_ptr<Completion> completion = Process::current().handles().find(handle);
  if (!completion) return -1;
  return completion->done() ? 1 : 0;
}

runjob_code runjob_wait(runjob_handle handle, double timeout_seconds) {
  std::optional<Status> outcome;
  const runjob_code code = guarded([&] {
    const Engine::Deadline deadline = to_deadline(timeout_seconds);
    const auto completion = find(handle);
    const std::shared_ptr<Engine> engine = Process::current().handles().engine(handle);
    outcome = engine ? engine->wait(*completion, deadline) : completion->wait(std::nullopt);  // without one it is done
    if (outcome) Process::current().report_loss(*outcome);
    return outcome.value_or(Status());
  });
  return code == RUNJOB_OK && !outcome ? RUNJOB_IN_PROGRESS : code;
}

runjob_code runjob_output(runjob_handle handle, const void** data, const int64_t** shape, int32_t* ndim) {
  return guarded([&] {
    std::shared_ptr<Completion> completion;
    Status outcome = find_result(handle, completion);
    if (!outcome.ok()) return outcome;
    const Completion::Result& result = completion->result();
    if (result.shape.empty())
      throw Error(Errc::kInvalidArgument, "the operation has no output but the caller's buffer");
    *data = result.data;
    *shape = result.shape.data();
    *ndim = static_cast<int32_t>(result.shape.size());
    return Status();
  });
}

runjob_code runjob_received_splits(runjob_handle handle, const int64_t** splits, int32_t* nsplits) {
  return guarded([&] {
    std::shared_ptr<Completion> completion;
    Status outcome = find_result(handle, completion);
    if (!outcome.ok()) return outcome;
    const Shape& received = completion->result().received_splits;
    if (received.empty()) throw Error(Errc::kInvalidArgument, "only an alltoall has splits");
    *splits = received.data();
    *nsplits = static_cast<int32_t>(received.size());
    return Status();
  });
}

void runjob_release(runjob_handle handle) {
  Process::current().handles().release(handle);
}

runjob_code runjob_symmetric_alloc(size_t bytes, void** memory) {
  return guarded([&] {
    if (memory == nullptr) throw Error(Errc::kInvalidArgument, "symmetric memory needs somewhere to put its address");
    Process& process = Process::current();
    const std::shared_ptr<const Job> job = process.job();
    static_cast<void>(process.engine(job));
    *memory = process.symmetric_memory().allocate(bytes, job->symmetric_heap);
    return Status();
  });
}

runjob_code runjob_symmetric_free(void* memory) {
  return guarded([&] {
    Process::current().symmetric_memory().free(memory);
    return Status();
  });
}

const char* runjob_backends_json(void) {
  const runjob_code code = guarded([] {
    last_document = backends_json();
    return Status();
  });
  return code == RUNJOB_OK ? last_document.c_str() : "{\"backends\": []}";
}
