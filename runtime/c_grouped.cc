#include <runjob/runjob.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/c_operation.hpp"

/// The C interface's operations on several tensors. No logic, as in c_api.cc.

namespace {

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

Submission make_allreduce(const char* name, const runjob_tensor* tensors, int32_t count, runjob_reduce_op op,
                          double prescale, double postscale, runjob_compression compression, int32_t process_set) {
  SubmissionView terms = view(name, Kind::kAllreduce, process_set);
  set_reduction(terms, op, prescale, postscale, compression);
  return make_group(terms, tensors, count);
}

Submission make_allgather(const char* name, const runjob_tensor* tensors, int32_t count, int32_t process_set) {
  return make_group(view(name, Kind::kAllgather, process_set), tensors, count);
}

Submission make_broadcast(const char* name, const runjob_tensor* tensors, int32_t count, int32_t root,
                          int32_t process_set) {
  SubmissionView terms = view(name, Kind::kBroadcast, process_set);
  terms.signature.root = root;
  return make_group(terms, tensors, count);
}

Submission make_reducescatter(const char* name, const runjob_tensor* tensors, int32_t count, runjob_reduce_op op,
                              double prescale, double postscale, int32_t process_set) {
  SubmissionView terms = view(name, Kind::kReducescatter, process_set);
  set_reduction(terms, op, prescale, postscale);
  return make_group(terms, tensors, count);
}

}  // namespace

runjob_code runjob_grouped_allreduce_async(const char* name, const runjob_tensor* tensors, int32_t count,
                                           runjob_reduce_op op, double prescale, double postscale,
                                           runjob_compression compression, int32_t process_set, runjob_handle* handle) {
  return guarded([&] {
    return submit(make_allreduce(name, tensors, count, op, prescale, postscale, compression, process_set), handle);
  });
}

runjob_code runjob_grouped_allreduce(const char* name, const runjob_tensor* tensors, int32_t count, runjob_reduce_op op,
                                     double prescale, double postscale, runjob_compression compression,
                                     int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  return guarded_run(
      [&] { return make_allreduce(name, tensors, count, op, prescale, postscale, compression, process_set); },
      timeout_seconds, handle);
}

runjob_code runjob_grouped_allgather_async(const char* name, const runjob_tensor* tensors, int32_t count,
                                           int32_t process_set, runjob_handle* handle) {
  return guarded([&] { return submit(make_allgather(name, tensors, count, process_set), handle); });
}

runjob_code runjob_grouped_allgather(const char* name, const runjob_tensor* tensors, int32_t count, int32_t process_set,
                                     double timeout_seconds, runjob_handle* handle) {
  return guarded_run([&] { return make_allgather(name, tensors, count, process_set); }, timeout_seconds, handle);
}

runjob_code runjob_grouped_broadcast_async(const char* name, const runjob_tensor* tensors, int32_t count, int32_t root,
                                           int32_t process_set, runjob_handle* handle) {
  return guarded([&] { return submit(make_broadcast(name, tensors, count, root, process_set), handle); });
}

runjob_code runjob_grouped_broadcast(const char* name, const runjob_tensor* tensors, int32_t count, int32_t root,
                                     int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  return guarded_run([&] { return make_broadcast(name, tensors, count, root, process_set); }, timeout_seconds, handle);
}

runjob_code runjob_grouped_reducescatter_async(const char* name, const runjob_tensor* tensors, int32_t count,
                                               runjob_reduce_op op, double prescale, double postscale,
                                               int32_t process_set, runjob_handle* handle) {
  return guarded(
      [&] { return submit(make_reducescatter(name, tensors, count, op, prescale, postscale, process_set), handle); });
}

runjob_code runjob_grouped_reducescatter(const char* name, const runjob_tensor* tensors, int32_t count,
                                         runjob_reduce_op op, double prescale, double postscale, int32_t process_set,
                                         double timeout_seconds, runjob_handle* handle) {
  return guarded_run([&] { return make_reducescatter(name, tensors, count, op, prescale, postscale, process_set); },
                     timeout_seconds, handle);
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
