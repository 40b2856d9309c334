#include <runjob/runjob.h>

#include "base/error.hpp"
#include "runtime/c_operation.hpp"

/// The two functions of the C interface that take any operation, and the older ones that describe one operation each.

namespace {

using namespace runjob::runtime;

/// The operation `kind` on `tensors`, which are lent.
runjob_operation described(runjob_kind kind, const char* name, const runjob_tensor* tensors, int32_t count,
                           int32_t process_set) {
  runjob_operation operation{};
  operation.size = sizeof operation;
  operation.name = name;
  operation.kind = kind;
  operation.tensors = tensors;
  operation.count = count;
  operation.process_set = process_set;
  return operation;
}

runjob_operation reduction(runjob_kind kind, const char* name, const runjob_tensor* tensors, int32_t count,
                           runjob_reduce_op op, double prescale, double postscale, runjob_compression compression,
                           int32_t process_set) {
  runjob_operation operation = described(kind, name, tensors, count, process_set);
  operation.op = op;
  operation.prescale = prescale;
  operation.postscale = postscale;
  operation.compression = compression;
  return operation;
}

runjob_operation broadcast(const char* name, const runjob_tensor* tensors, int32_t count, int32_t root,
                           int32_t process_set) {
  runjob_operation operation = described(RUNJOB_BROADCAST, name, tensors, count, process_set);
  operation.root = root;
  return operation;
}

runjob_operation alltoall(const char* name, const runjob_tensor* tensor, const int64_t* splits, int32_t nsplits,
                          int32_t process_set) {
  runjob_operation operation = described(RUNJOB_ALLTOALL, name, tensor, 1, process_set);
  operation.splits = splits;
  operation.nsplits = nsplits;
  return operation;
}

runjob_operation without_tensors(runjob_kind kind, const char* name, int32_t process_set) {
  return described(kind, name, nullptr, 0, process_set);
}

runjob_operation group(runjob_operation operation) {
  operation.is_group = 1;
  return operation;
}

}  // namespace

runjob_code runjob_submit(const runjob_operation* operation, runjob_handle* handle) {
  return guarded([&] { return submit(operation, handle); });
}

runjob_code runjob_run(const runjob_operation* operation, double timeout_seconds, runjob_handle* handle) {
  bool in_progress = false;
  const runjob_code code = guarded([&] { return run(operation, timeout_seconds, handle, in_progress); });
  return code == RUNJOB_OK && in_progress ? RUNJOB_IN_PROGRESS : code;
}

runjob_code runjob_unnamed_count(int32_t process_set, int64_t* count) {
  return guarded([&] {
    if (count == nullptr) throw runjob::Error(runjob::Errc::kInvalidArgument, "the count needs somewhere to go");
    *count = unnamed_count(process_set);
    return runjob::Status();
  });
}

runjob_code runjob_compressed_allreduce_async(const char* name, const void* input, void* output, const int64_t* shape,
                                              int32_t ndim, runjob_dtype dtype, runjob_reduce_op op, double prescale,
                                              double postscale, runjob_compression compression, int32_t process_set,
                                              runjob_handle* handle) {
  const runjob_tensor tensor{input, output, 0, shape, ndim, dtype};
  const runjob_operation operation =
      reduction(RUNJOB_ALLREDUCE, name, &tensor, 1, op, prescale, postscale, compression, process_set);
  return runjob_submit(&operation, handle);
}

runjob_code runjob_compressed_allreduce(const char* name, const void* input, void* output, const int64_t* shape,
                                        int32_t ndim, runjob_dtype dtype, runjob_reduce_op op, double prescale,
                                        double postscale, runjob_compression compression, int32_t process_set,
                                        double timeout_seconds, runjob_handle* handle) {
  const runjob_tensor tensor{input, output, 0, shape, ndim, dtype};
  const runjob_operation operation =
      reduction(RUNJOB_ALLREDUCE, name, &tensor, 1, op, prescale, postscale, compression, process_set);
  return runjob_run(&operation, timeout_seconds, handle);
}

runjob_code runjob_allreduce_async(const char* name, const void* input, void* output, const int64_t* shape,
                                   int32_t ndim, runjob_dtype dtype, runjob_reduce_op op, double prescale,
                                   double postscale, int32_t process_set, runjob_handle* handle) {
  return runjob_compressed_allreduce_async(name, input, output, shape, ndim, dtype, op, prescale, postscale,
                                           RUNJOB_COMPRESSION_NONE, process_set, handle);
}

runjob_code runjob_allreduce(const char* name, const void* input, void* output, const int64_t* shape, int32_t ndim,
                             runjob_dtype dtype, runjob_reduce_op op, double prescale, double postscale,
                             int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  return runjob_compressed_allreduce(name, input, output, shape, ndim, dtype, op, prescale, postscale,
                                     RUNJOB_COMPRESSION_NONE, process_set, timeout_seconds, handle);
}

runjob_code runjob_broadcast_async(const char* name, void* buffer, const int64_t* shape, int32_t ndim,
                                   runjob_dtype dtype, int32_t root, int32_t process_set, runjob_handle* handle) {
  const runjob_tensor tensor{buffer, buffer, 0, shape, ndim, dtype};
  const runjob_operation operation = broadcast(name, &tensor, 1, root, process_set);
  return runjob_submit(&operation, handle);
}

runjob_code runjob_broadcast(const char* name, void* buffer, const int64_t* shape, int32_t ndim, runjob_dtype dtype,
                             int32_t root, int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  const runjob_tensor tensor{buffer, buffer, 0, shape, ndim, dtype};
  const runjob_operation operation = broadcast(name, &tensor, 1, root, process_set);
  return runjob_run(&operation, timeout_seconds, handle);
}

runjob_code runjob_allgather_async(const char* name, const void* input, void* output, int64_t output_bytes,
                                   const int64_t* shape, int32_t ndim, runjob_dtype dtype, int32_t process_set,
                                   runjob_handle* handle) {
  const runjob_tensor tensor{input, output, output_bytes, shape, ndim, dtype};
  const runjob_operation operation = described(RUNJOB_ALLGATHER, name, &tensor, 1, process_set);
  return runjob_submit(&operation, handle);
}

runjob_code runjob_allgather(const char* name, const void* input, void* output, int64_t output_bytes,
                             const int64_t* shape, int32_t ndim, runjob_dtype dtype, int32_t process_set,
                             double timeout_seconds, runjob_handle* handle) {
  const runjob_tensor tensor{input, output, output_bytes, shape, ndim, dtype};
  const runjob_operation operation = described(RUNJOB_ALLGATHER, name, &tensor, 1, process_set);
  return runjob_run(&operation, timeout_seconds, handle);
}

runjob_code runjob_alltoall_async(const char* name, const void* input, void* output, int64_t output_bytes,
                                  const int64_t* shape, int32_t ndim, const int64_t* splits, int32_t nsplits,
                                  runjob_dtype dtype, int32_t process_set, runjob_handle* handle) {
  const runjob_tensor tensor{input, output, output_bytes, shape, ndim, dtype};
  const runjob_operation operation = alltoall(name, &tensor, splits, nsplits, process_set);
  return runjob_submit(&operation, handle);
}

runjob_code runjob_alltoall(const char* name, const void* input, void* output, int64_t output_bytes,
                            const int64_t* shape, int32_t ndim, const int64_t* splits, int32_t nsplits,
                            runjob_dtype dtype, int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  const runjob_tensor tensor{input, output, output_bytes, shape, ndim, dtype};
  const runjob_operation operation = alltoall(name, &tensor, splits, nsplits, process_set);
  return runjob_run(&operation, timeout_seconds, handle);
}

runjob_code runjob_reducescatter_async(const char* name, const void* input, void* output, int64_t output_bytes,
                                       const int64_t* shape, int32_t ndim, runjob_dtype dtype, runjob_reduce_op op,
                                       double prescale, double postscale, int32_t process_set, runjob_handle* handle) {
  const runjob_tensor tensor{input, output, output_bytes, shape, ndim, dtype};
  const runjob_operation operation =
      reduction(RUNJOB_REDUCESCATTER, name, &tensor, 1, op, prescale, postscale, RUNJOB_COMPRESSION_NONE, process_set);
  return runjob_submit(&operation, handle);
}

runjob_code runjob_reducescatter(const char* name, const void* input, void* output, int64_t output_bytes,
                                 const int64_t* shape, int32_t ndim, runjob_dtype dtype, runjob_reduce_op op,
                                 double prescale, double postscale, int32_t process_set, double timeout_seconds,
                                 runjob_handle* handle) {
  const runjob_tensor tensor{input, output, output_bytes, shape, ndim, dtype};
  const runjob_operation operation =
      reduction(RUNJOB_REDUCESCATTER, name, &tensor, 1, op, prescale, postscale, RUNJOB_COMPRESSION_NONE, process_set);
  return runjob_run(&operation, timeout_seconds, handle);
}

runjob_code runjob_barrier_async(const char* name, int32_t process_set, runjob_handle* handle) {
  const runjob_operation operation = without_tensors(RUNJOB_BARRIER, name, process_set);
  return runjob_submit(&operation, handle);
}

runjob_code runjob_barrier(const char* name, int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  const runjob_operation operation = without_tensors(RUNJOB_BARRIER, name, process_set);
  return runjob_run(&operation, timeout_seconds, handle);
}

runjob_code runjob_join_async(runjob_handle* handle) {
  const runjob_operation operation = without_tensors(RUNJOB_JOIN, nullptr, 0);
  return runjob_submit(&operation, handle);
}

runjob_code runjob_join(double timeout_seconds, runjob_handle* handle) {
  const runjob_operation operation = without_tensors(RUNJOB_JOIN, nullptr, 0);
  return runjob_run(&operation, timeout_seconds, handle);
}

runjob_code runjob_grouped_allreduce_async(const char* name, const runjob_tensor* tensors, int32_t count,
                                           runjob_reduce_op op, double prescale, double postscale,
                                           runjob_compression compression, int32_t process_set, runjob_handle* handle) {
  const runjob_operation operation =
      group(reduction(RUNJOB_ALLREDUCE, name, tensors, count, op, prescale, postscale, compression, process_set));
  return runjob_submit(&operation, handle);
}

runjob_code runjob_grouped_allreduce(const char* name, const runjob_tensor* tensors, int32_t count, runjob_reduce_op op,
                                     double prescale, double postscale, runjob_compression compression,
                                     int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  const runjob_operation operation =
      group(reduction(RUNJOB_ALLREDUCE, name, tensors, count, op, prescale, postscale, compression, process_set));
  return runjob_run(&operation, timeout_seconds, handle);
}

runjob_code runjob_grouped_allgather_async(const char* name, const runjob_tensor* tensors, int32_t count,
                                           int32_t process_set, runjob_handle* handle) {
  const runjob_operation operation = group(described(RUNJOB_ALLGATHER, name, tensors, count, process_set));
  return runjob_submit(&operation, handle);
}

runjob_code runjob_grouped_allgather(const char* name, const runjob_tensor* tensors, int32_t count, int32_t process_set,
                                     double timeout_seconds, runjob_handle* handle) {
  const runjob_operation operation = group(described(RUNJOB_ALLGATHER, name, tensors, count, process_set));
  return runjob_run(&operation, timeout_seconds, handle);
}

runjob_code runjob_grouped_broadcast_async(const char* name, const runjob_tensor* tensors, int32_t count, int32_t root,
                                           int32_t process_set, runjob_handle* handle) {
  const runjob_operation operation = group(broadcast(name, tensors, count, root, process_set));
  return runjob_submit(&operation, handle);
}

runjob_code runjob_grouped_broadcast(const char* name, const runjob_tensor* tensors, int32_t count, int32_t root,
                                     int32_t process_set, double timeout_seconds, runjob_handle* handle) {
  const runjob_operation operation = group(broadcast(name, tensors, count, root, process_set));
  return runjob_run(&operation, timeout_seconds, handle);
}

runjob_code runjob_grouped_reducescatter_async(const char* name, const runjob_tensor* tensors, int32_t count,
                                               runjob_reduce_op op, double prescale, double postscale,
                                               int32_t process_set, runjob_handle* handle) {
  const runjob_operation operation = group(reduction(RUNJOB_REDUCESCATTER, name, tensors, count, op, prescale,
                                                     postscale, RUNJOB_COMPRESSION_NONE, process_set));
  return runjob_submit(&operation, handle);
}

runjob_code runjob_grouped_reducescatter(const char* name, const runjob_tensor* tensors, int32_t count,
                                         runjob_reduce_op op, double prescale, double postscale, int32_t process_set,
                                         double timeout_seconds, runjob_handle* handle) {
  const runjob_operation operation = group(reduction(RUNJOB_REDUCESCATTER, name, tensors, count, op, prescale,
                                                     postscale, RUNJOB_COMPRESSION_NONE, process_set));
  return runjob_run(&operation, timeout_seconds, handle);
}
