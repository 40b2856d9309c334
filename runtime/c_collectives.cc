#include <runjob/runjob.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/c_operation.hpp"
#include "runtime/c_status.hpp"

/// The C interface's operations on one tensor. No logic, as in c_api.cc.

namespace {

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;

SubmissionView make_allreduce(const char* name, const void* input, void* output, const int64_t* shape, int32_t ndim,
                              runjob_dtype dtype, runjob_reduce_op op, double prescale, double postscale,
                              runjob_compression compression, int32_t process_set) {
  SubmissionView submission = view(name, Kind::kAllreduce, shape, ndim, dtype, process_set);
  set_reduction(submission, op, prescale, postscale, compression);
  submission.input = input;
  submission.output = output;
  check_buffer(submission, input, "the input");
  check_buffer(submission, output, "the output");
  return submission;
}

SubmissionView make_broadcast(const char* name, void* buffer, const int64_t* shape, int32_t ndim, runjob_dtype dtype,
                              int32_t root, int32_t process_set) {
  SubmissionView submission = view(name, Kind::kBroadcast, shape, ndim, dtype, process_set);
  submission.signature.root = root;
  submission.input = submission.output = buffer;
  check_buffer(submission, buffer, "the buffer");
  return submission;
}

SubmissionView make_allgather(const char* name, const void* input, void* output, int64_t output_bytes,
                              const int64_t* shape, int32_t ndim, runjob_dtype dtype, int32_t process_set) {
  SubmissionView submission = view(name, Kind::kAllgather, shape, ndim, dtype, process_set);
  submission.input = input;
  set_room(submission, output, output_bytes);
  check_buffer(submission, input, "the input");
  return submission;
}

SubmissionView make_alltoall(const char* name, const void* input, void* output, int64_t output_bytes,
                             const int64_t* shape, int32_t ndim, const int64_t* splits, int32_t nsplits,
                             runjob_dtype dtype, int32_t process_set) {
  SubmissionView submission = view(name, Kind::kAlltoall, shape, ndim, dtype, process_set);
  if (splits != nullptr) {
    submission.signature.splits = to_shape(splits, nsplits);
    if (nsplits == 0) throw Error(Errc::kInvalidArgument, fmt::format("alltoall '{}': the splits are empty", name));
  }
  submission.input = input;
  set_room(submission, output, output_bytes);
  check_buffer(submission, input, "the input");
  return submission;
}

SubmissionView make_reducescatter(const char* name, const void* input, void* output, int64_t output_bytes,
                                  const int64_t* shape, int32_t ndim, runjob_dtype dtype, runjob_reduce_op op,
                                  double prescale, double postscale, int32_t process_set) {
  SubmissionView submission = view(name, Kind::kReducescatter, shape, ndim, dtype, process_set);
  set_reduction(submission, op, prescale, postscale);
  submission.input = input;
  set_room(submission, output, output_bytes);
  check_buffer(submission, input, "the input");
  return submission;
}

}  // namespace

runjob_code runjob_allreduce_async(const char* name, const void* input, void* output, const int64_t* shape,
                                   int32_t ndim, runjob_dtype dtype, runjob_reduce_op op, double prescale,
                                   double postscale, int32_t process_set, runjob_handle* handle) {
  return guarded([&] {
    return submit(make_allreduce(name, input, output, shape, ndim, dtype, op, prescale, postscale,
                                 RUNJOB_COMPRESSION_NONE, process_set),
                  handle);
  });
}

runjob_code runjob_allreduce(const char* name, const void* input, void* output, const int64_t* shape, int32_t ndim,
                             runjob_dtype dtype, runjob_reduce_op op, double prescale, double postscale,
                             int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  return guarded_run(
      [&] {
        return make_allreduce(name, input, output, shape, ndim, dtype, op, prescale, postscale, RUNJOB_COMPRESSION_NONE,
                              process_set);
      },
      timeout_seconds, handle);
}

runjob_code runjob_compressed_allreduce_async(const char* name, const void* input, void* output, const int64_t* shape,
                                              int32_t ndim, runjob_dtype dtype, runjob_reduce_op op, double prescale,
                                              double postscale, runjob_compression compression, int32_t process_set,
                                              runjob_handle* handle) {
  return guarded([&] {
    return submit(
        make_allreduce(name, input, output, shape, ndim, dtype, op, prescale, postscale, compression, process_set),
        handle);
  });
}

runjob_code runjob_compressed_allreduce(const char* name, const void* input, void* output, const int64_t* shape,
                                        int32_t ndim, runjob_dtype dtype, runjob_reduce_op op, double prescale,
                                        double postscale, runjob_compression compression, int32_t process_set,
                                        double timeout_seconds, runjob_handle* handle) {
  return guarded_run(
      [&] {
        return make_allreduce(name, input, output, shape, ndim, dtype, op, prescale, postscale, compression,
                              process_set);
      },
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
  return guarded([&] { return submit(view(name, Kind::kBarrier, process_set), handle); });
}

runjob_code runjob_barrier(const char* name, int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  return guarded_run([&] { return view(name, Kind::kBarrier, process_set); }, timeout_seconds, handle);
}

runjob_code runjob_join_async(runjob_handle* handle) {
  return guarded([&] { return submit(view(kJoinName, Kind::kJoin, 0), handle); });
}

runjob_code runjob_join(double timeout_seconds, runjob_handle* handle) {
  return guarded_run([&] { return view(kJoinName, Kind::kJoin, 0); }, timeout_seconds, handle);
}
