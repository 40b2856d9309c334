#include <algorithm>
#include <runjob/runjob.h>
#include <string>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "runtime/backends/backend_registry.hpp"
#include "runtime/c_operation.hpp"
#include "runtime/c_status.hpp"
#include "runtime/process.hpp"

/// The C interface: turns C arguments into values and everything thrown into a code and a text. No logic.

namespace {

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

/// Lent to the caller until its next call in the same thread.
thread_local std::string last_document;

/// Calls `property` with this rank's job; returns -1 when not initialised.
template <class Property>
int place(Property property) noexcept {
  const std::shared_ptr<const Job> job = Process::current().job();
  return job ? property(job->place) : -1;
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

runjob_code runjob_shutdown_at_exit(void) {
  return guarded([] {
    Process::current().shutdown(Goodbye::kProgramEnd);
    return Status();
  });
}

runjob_code runjob_failing(const char* reason) {
  return guarded([&] {
    Process::current().failing(reason == nullptr ? "" : reason);
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

int runjob_poll(runjob_handle handle) {
  const std::shared_ptr<Completion> completion = Process::current().handles().find(handle);
  if (!completion) return -1;
  return completion->has_ended() ? 1 : 0;
}

runjob_code runjob_wait(runjob_handle handle, double timeout_seconds) {
  return guarded_wait(handle, timeout_seconds, [](Completion& completion, const Engine::Deadline& deadline) {
    return completion.wait_for_end(deadline);
  });
}

runjob_code runjob_on_done(runjob_handle handle, void (*notify)(void* context), void* context) {
  return guarded([&] {
    if (notify == nullptr) throw Error(Errc::kInvalidArgument, "there is nothing to call when the operation is done");
    find(handle)->on_finish([notify, context] { notify(context); });
    return Status();
  });
}

runjob_code runjob_output(runjob_handle handle, const void** data, const int64_t** shape, int32_t* ndim) {
  return guarded([&] {
    std::shared_ptr<Completion> completion;
    Status outcome = find_result(handle, completion);
    if (!outcome.ok()) return outcome;
    const Completion::Result& result = completion->result();
    if (result.shape.empty())
      throw Error(Errc::kInvalidArgument, "the operation has no output but the caller's buffer");
    give(result, data, shape, ndim);
    return Status();
  });
}

runjob_code runjob_grouped_output(runjob_handle handle, int32_t tensor, const void** data, const int64_t** shape,
                                  int32_t* ndim) {
  return guarded([&] {
    std::shared_ptr<Completion> completion;
    Status outcome = find_result(handle, completion);
    if (!outcome.ok()) return outcome;
    const auto& results = completion->result().tensors;
    if (results.empty()) throw Error(Errc::kInvalidArgument, "the operation has no outputs but the caller's buffers");
    if (tensor < 0 || static_cast<std::size_t>(tensor) >= results.size())
      throw Error(Errc::kInvalidArgument,
                  fmt::format("{} is not one of the group's {} tensors", tensor, results.size()));
    give(results[static_cast<std::size_t>(tensor)], data, shape, ndim);
    return Status();
  });
}

runjob_code runjob_received_splits(runjob_handle handle, const int64_t** splits, int32_t* nsplits) {
  return guarded([&] {
    std::shared_ptr<Completion> completion;
    Status outcome = find_result(handle, completion);
    if (!outcome.ok()) return outcome;
    const Shape& received = completion->result().received_splits;
    if (received.empty()) throw Error(Errc::kInvalidArgument, "only an alltoall and an allgather have splits");
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
    *memory = process.symmetric_memory().allocate(bytes, process.member_job()->job_buffers);
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
