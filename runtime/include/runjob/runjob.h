#ifndef RUNJOB_RUNJOB_H_
#define RUNJOB_RUNJOB_H_

/*
 * runjob's runtime for C, and the ABI that every language binding uses.
 *
 * Stable   a program, built once with this header, runs with every later librunjob.so.0: functions, values and their meanings are added,
 *          and none is removed or changed; a struct keeps its size and its fields. Symbols have the version RUNJOB_0. What cannot be
 *          done so would be librunjob.so.1. A program built with a newer header than the library's starts as long as it calls no function
 *          that is missing there; runjob_version() tells.
 * Threads  every function may be called from any thread at any time, except that init and shutdown must not overlap
 *          each other. No callback of the caller is run but that of runjob_on_done().
 * Errors   functions return a runjob_code; the text is runjob_error_message() of the last failure in the same
 *          thread.
 *          Nothing throws, aborts, or writes to standard output.
 * Fork     a child of fork() gets RUNJOB_NOT_INITIALIZED from everything but init, never a hang.
 */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RUNJOB_API __attribute__((visibility("default")))
#else
#define RUNJOB_API
#endif

/* Of this header; of the library that a program runs with: runjob_version(). */
#define RUNJOB_VERSION_MAJOR 0
#define RUNJOB_VERSION_MINOR 1
#define RUNJOB_VERSION_PATCH 0
/* To compare: RUNJOB_VERSION >= 200 is 0.2.0 or later. */
#define RUNJOB_VERSION (RUNJOB_VERSION_MAJOR * 10000 + RUNJOB_VERSION_MINOR * 100 + RUNJOB_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

typedef enum runjob_code {
  RUNJOB_OK = 0,
  RUNJOB_INVALID_ARGUMENT = 1, /* can never work: bad dtype for the operation, duplicate name in flight, bad root */
  RUNJOB_NOT_INITIALIZED = 2,  /* runjob_init() has not succeeded, or runjob_shutdown() was called */
  RUNJOB_MISMATCH = 3,  /* ranks disagree on a tensor's shape, dtype, kind, op, root or scale: names tensor and ranks */
  RUNJOB_PEER_LOST = 4, /* another rank is gone: names it */
  RUNJOB_TIMEOUT = 5,
  RUNJOB_ABORTED = 6,     /* ended by shutdown, here or on another rank */
  RUNJOB_UNAVAILABLE = 7, /* no backend for it; the text says why */
  RUNJOB_CONNECT = 8,     /* the rendezvous or a rank could not be reached */
  RUNJOB_IN_PROGRESS = 9, /* runjob_wait() with a timeout: not done yet */
  RUNJOB_INTERNAL = 10
} runjob_code;

/* Numbered as Horovod numbers them; BFLOAT16 is ours. Sizes: 1 1 2 2 4 8 2 4 8 1 2 bytes. */
typedef enum runjob_dtype {
  RUNJOB_UINT8 = 0,
  RUNJOB_INT8 = 1,
  RUNJOB_UINT16 = 2,
  RUNJOB_INT16 = 3,
  RUNJOB_INT32 = 4,
  RUNJOB_INT64 = 5,
  RUNJOB_FLOAT16 = 6,
  RUNJOB_FLOAT32 = 7,
  RUNJOB_FLOAT64 = 8,
  RUNJOB_BOOL = 9,
  RUNJOB_BFLOAT16 = 10
} runjob_dtype;

/* Numbered as Horovod numbers them; 2 is Adasum's. */
typedef enum runjob_reduce_op {
  RUNJOB_AVERAGE = 0,
  RUNJOB_SUM = 1,
  RUNJOB_MIN = 3,
  RUNJOB_MAX = 4,
  RUNJOB_PRODUCT = 5
} runjob_reduce_op;

/* An operation in flight or done: positive, unique in the process, valid until runjob_release(). */
typedef int64_t runjob_handle;

RUNJOB_API const char* runjob_version(void); /* of the library: "0.1.0" */
RUNJOB_API const char* runjob_error_message(void);

/*
 * Joins the job: asks the rendezvous named by RUNJOB_RENDEZVOUS for this process's place and connects the ranks.
 * Without that variable it is a job of the processes that mpirun or srun has started, through PMIx or PMI; without
 * those this process alone (size 1). A second call without shutdown does nothing.
 * May be repeated after runjob_shutdown(), any number of times, as long as all ranks do.
 * Blocks until all ranks have called it, at most the job's start timeout.
 */
RUNJOB_API runjob_code runjob_init(void);

/*
 * Leaves the job. Operations in flight end with RUNJOB_ABORTED, on the other ranks too: they cannot complete without this one.
 * Never waits over a second. Does nothing when not initialised.
 */
RUNJOB_API runjob_code runjob_shutdown(void);
RUNJOB_API int runjob_is_initialized(void);

/*
 * Tells the launcher that this rank is about to end because of an error of its own; `reason` is one line for people. To be
 * called before runjob_shutdown(): the launcher then names this rank as the one that failed first, although the others may
 * end sooner than it does. That a rank fails because another one left needs no call. Does nothing when not initialised or
 * without a launcher. Waits for no other rank.
 */
RUNJOB_API runjob_code runjob_failing(const char* reason);

/*
 * Begins a trace of the collectives in the file `path` of rank 0, for Perfetto and chrome://tracing; one that is being written
 * ends. To be called by rank 0, by others without effect; with `all_ranks` by every rank, and the trace has a track for each.
 * mark_cycles: marks each round of negotiation. At most RUNJOB_TIMELINE_MAX_MB long. Any thread.
 */
RUNJOB_API runjob_code runjob_start_timeline(const char* path, int mark_cycles, int all_ranks);
/*
 * Writes what is left of it. Does nothing when there is none. With tracks, rank 0 waits for the others to stop as well, for a second
 * at most, so that their last records are in it.
 */
RUNJOB_API runjob_code runjob_stop_timeline(void);

/* This rank's place; -1 when not initialised. See Placement in docs/architecture.md for the terms. */
RUNJOB_API int runjob_rank(void);
RUNJOB_API int runjob_size(void);
RUNJOB_API int runjob_local_rank(void);
RUNJOB_API int runjob_local_size(void);
RUNJOB_API int runjob_cross_rank(void);
RUNJOB_API int runjob_cross_size(void);
RUNJOB_API int runjob_is_homogeneous(void); /* 1 when every host has the same number of ranks */

/*
 * Collectives. Each returns at once with a handle; all ranks must submit the same names, in any order, from any thread.
 *
 * name     what identifies the operation across ranks; at most one in flight per name.
 * shape    `ndim` extents, row-major dense buffers; ndim 0 is a scalar, an extent of 0 is allowed.
 * Owner    the buffers are lent until the handle is done; `shape` and `name` are copied.
 * Mismatch in dtype, shape, kind, op, scale or root ends the operation on all ranks with RUNJOB_MISMATCH; the job goes on.
 * process_set  0 for the whole job, or a number of runjob_process_set_add(). Then "all ranks" means those of the set, wherever this
 *          page says so, and `rank order` theirs; averages divide by the set's size. `root` stays a rank of the job. An operation of a set
 *          that this rank is not in is RUNJOB_INVALID_ARGUMENT. Names of different sets do not meet.
 */

/*
 * output[i] = postscale * reduce over ranks of (prescale * input[i]); input == output is allowed, other overlap not.
 * AVERAGE divides the sum by the size. Integers: scaling and averaging are done in double and truncate toward zero;
 * sums wrap. BOOL: SUM and MAX are or, PRODUCT and MIN are and; AVERAGE and scaling are invalid. FLOAT16 and BFLOAT16
 * accumulate in float32.
 */
RUNJOB_API runjob_code runjob_allreduce_async(const char* name, const void* input, void* output, const int64_t* shape,
                                              int32_t ndim, runjob_dtype dtype, runjob_reduce_op op, double prescale,
                                              double postscale, int32_t process_set, runjob_handle* handle);

/* On `root`, `buffer` is read; on the others it is written. */
RUNJOB_API runjob_code runjob_broadcast_async(const char* name, void* buffer, const int64_t* shape, int32_t ndim,
                                              runjob_dtype dtype, int32_t root, int32_t process_set,
                                              runjob_handle* handle);

/*
 * Concatenates the ranks' tensors along their first dimension, in rank order. First extents may differ, the others
 * and the number of dimensions (at least 1) not. The result is written to `output`, lent like the input, when it takes at
 * most `output_bytes`; else, or when that is null, it belongs to the handle. runjob_output() tells where it is.
 */
RUNJOB_API runjob_code runjob_allgather_async(const char* name, const void* input, void* output, int64_t output_bytes,
                                              const int64_t* shape, int32_t ndim, runjob_dtype dtype,
                                              int32_t process_set, runjob_handle* handle);

/*
 * Sends `splits[r]` rows of the tensor's first dimension to rank r, the first ones to rank 0, and concatenates what comes, in
 * rank order. Null for `splits`, of which there are as many as ranks: as many rows to each, which must be possible. First
 * extents may differ among ranks, the others not. `output` as for allgather; see also runjob_received_splits().
 */
RUNJOB_API runjob_code runjob_alltoall_async(const char* name, const void* input, void* output, int64_t output_bytes,
                                             const int64_t* shape, int32_t ndim, const int64_t* splits, int32_t nsplits,
                                             runjob_dtype dtype, int32_t process_set, runjob_handle* handle);

/*
 * Reduces as runjob_allreduce_async() does, and leaves each rank a part of the result's rows, the first dimension: rank 0 the
 * first ones. When they cannot be divided evenly, the first ranks get one row more. `output` as for allgather.
 */
RUNJOB_API runjob_code runjob_reducescatter_async(const char* name, const void* input, void* output,
                                                  int64_t output_bytes, const int64_t* shape, int32_t ndim,
                                                  runjob_dtype dtype, runjob_reduce_op op, double prescale,
                                                  double postscale, int32_t process_set, runjob_handle* handle);

/* Done when all ranks have submitted it. */
RUNJOB_API runjob_code runjob_barrier_async(const char* name, int32_t process_set, runjob_handle* handle);

/*
 * The same, blocking: what `_async` and runjob_wait() do together, but small ones much faster. `handle` gets 0 when the
 * operation is over and has left nothing to take; else it is to be released: with RUNJOB_IN_PROGRESS, after
 * `timeout_seconds` (< 0: for ever), it is the operation itself; with RUNJOB_OK it holds a result.
 * Without a time limit, `handle` may be null when nothing can be left: the operation has no result, or one that fills `output` to
 * the last byte, else it is RUNJOB_INVALID_ARGUMENT on this rank. That is the fastest form.
 */
RUNJOB_API runjob_code runjob_allreduce(const char* name, const void* input, void* output, const int64_t* shape,
                                        int32_t ndim, runjob_dtype dtype, runjob_reduce_op op, double prescale,
                                        double postscale, int32_t process_set, double timeout_seconds,
                                        runjob_handle* handle);
RUNJOB_API runjob_code runjob_broadcast(const char* name, void* buffer, const int64_t* shape, int32_t ndim,
                                        runjob_dtype dtype, int32_t root, int32_t process_set, double timeout_seconds,
                                        runjob_handle* handle);
RUNJOB_API runjob_code runjob_allgather(const char* name, const void* input, void* output, int64_t output_bytes,
                                        const int64_t* shape, int32_t ndim, runjob_dtype dtype, int32_t process_set,
                                        double timeout_seconds, runjob_handle* handle);
RUNJOB_API runjob_code runjob_alltoall(const char* name, const void* input, void* output, int64_t output_bytes,
                                       const int64_t* shape, int32_t ndim, const int64_t* splits, int32_t nsplits,
                                       runjob_dtype dtype, int32_t process_set, double timeout_seconds,
                                       runjob_handle* handle);
RUNJOB_API runjob_code runjob_reducescatter(const char* name, const void* input, void* output, int64_t output_bytes,
                                            const int64_t* shape, int32_t ndim, runjob_dtype dtype, runjob_reduce_op op,
                                            double prescale, double postscale, int32_t process_set,
                                            double timeout_seconds, runjob_handle* handle);
RUNJOB_API runjob_code runjob_barrier(const char* name, int32_t process_set, double timeout_seconds,
                                      runjob_handle* handle);

/* As what values of FLOAT32 and FLOAT64 travel, to halve or quarter what is sent; other dtypes travel as they are. */
typedef enum runjob_compression {
  RUNJOB_COMPRESSION_NONE = 0,
  RUNJOB_COMPRESSION_FLOAT16 = 1,
  RUNJOB_COMPRESSION_BFLOAT16 = 2
} runjob_compression;

/*
 * runjob_allreduce_async() and runjob_allreduce() with compression, the same on all ranks: values are multiplied by `prescale` and
 * rounded, accumulated in float32, and the result, rounded once more, is in `dtype` again. What FLOAT16 cannot hold becomes infinite.
 */
RUNJOB_API runjob_code runjob_compressed_allreduce_async(const char* name, const void* input, void* output,
                                                         const int64_t* shape, int32_t ndim, runjob_dtype dtype,
                                                         runjob_reduce_op op, double prescale, double postscale,
                                                         runjob_compression compression, int32_t process_set,
                                                         runjob_handle* handle);
RUNJOB_API runjob_code runjob_compressed_allreduce(const char* name, const void* input, void* output,
                                                   const int64_t* shape, int32_t ndim, runjob_dtype dtype,
                                                   runjob_reduce_op op, double prescale, double postscale,
                                                   runjob_compression compression, int32_t process_set,
                                                   double timeout_seconds, runjob_handle* handle);

/* One tensor of a group. */
typedef struct runjob_tensor {
  const void* input;    /* not read by broadcast */
  void* output;         /* allreduce: may be `input`; broadcast: the one buffer; else room for the result, or null */
  int64_t output_bytes; /* of that room */
  const int64_t* shape;
  int32_t ndim;
  int32_t dtype; /* a runjob_dtype */
} runjob_tensor;

/*
 * The same operation on `count` tensors, at least 1, which may differ in shape and dtype. It is one operation, with one name and one
 * handle: it runs when all ranks have submitted it, with the same tensors in the same order, and fails as a whole. `tensors` is
 * copied. Results of allgather and reducescatter: runjob_grouped_output(), once done. The blocking forms leave a handle as those of
 * single tensors do.
 */
RUNJOB_API runjob_code runjob_grouped_allreduce_async(const char* name, const runjob_tensor* tensors, int32_t count,
                                                      runjob_reduce_op op, double prescale, double postscale,
                                                      runjob_compression compression, int32_t process_set,
                                                      runjob_handle* handle);
RUNJOB_API runjob_code runjob_grouped_allgather_async(const char* name, const runjob_tensor* tensors, int32_t count,
                                                      int32_t process_set, runjob_handle* handle);
RUNJOB_API runjob_code runjob_grouped_broadcast_async(const char* name, const runjob_tensor* tensors, int32_t count,
                                                      int32_t root, int32_t process_set, runjob_handle* handle);
RUNJOB_API runjob_code runjob_grouped_reducescatter_async(const char* name, const runjob_tensor* tensors, int32_t count,
                                                          runjob_reduce_op op, double prescale, double postscale,
                                                          int32_t process_set, runjob_handle* handle);
RUNJOB_API runjob_code runjob_grouped_allreduce(const char* name, const runjob_tensor* tensors, int32_t count,
                                                runjob_reduce_op op, double prescale, double postscale,
                                                runjob_compression compression, int32_t process_set,
                                                double timeout_seconds, runjob_handle* handle);
RUNJOB_API runjob_code runjob_grouped_allgather(const char* name, const runjob_tensor* tensors, int32_t count,
                                                int32_t process_set, double timeout_seconds, runjob_handle* handle);
RUNJOB_API runjob_code runjob_grouped_broadcast(const char* name, const runjob_tensor* tensors, int32_t count,
                                                int32_t root, int32_t process_set, double timeout_seconds,
                                                runjob_handle* handle);
RUNJOB_API runjob_code runjob_grouped_reducescatter(const char* name, const runjob_tensor* tensors, int32_t count,
                                                    runjob_reduce_op op, double prescale, double postscale,
                                                    int32_t process_set, double timeout_seconds, runjob_handle* handle);

/* The result of one tensor, counted from 0, as runjob_output() gives those of single ones. */
RUNJOB_API runjob_code runjob_grouped_output(runjob_handle handle, int32_t tensor, const void** data,
                                             const int64_t** shape, int32_t* ndim);

/*
 * Says that this rank has no more data, while others may have: until all ranks have joined, zeros of this one take part in
 * their allreduces (averages still divide by the size), it counts as having come to their barriers, and their other operations end with
 * RUNJOB_MISMATCH. Done when all have joined. The result, one int32, is the rank that joined last, the same on all.
 */
RUNJOB_API runjob_code runjob_join_async(runjob_handle* handle);
RUNJOB_API runjob_code runjob_join(double timeout_seconds, runjob_handle* handle);

/*
 * Process sets: some of the job's ranks, among which collectives can run. Each set works for itself: sets may overlap, operations
 * of different sets may be submitted in any order on each rank, and no set waits for ranks outside of it.
 *
 * Changes  runjob_process_set_add() and _remove() are called by all ranks of the job, in the same order, with the same arguments; they
 *          block until all have come, and fail on all or none. They need RUNJOB_DYNAMIC_PROCESS_SETS=1 in the environment, or `dynamic`
 *          in runjob_init_with_process_sets().
 * Numbers  from 1 on, the same on all ranks; freed ones are given again, those first that were freed first. 0 is the whole job.
 * Life     until removal or shutdown. When a rank of the job fails, all sets end; when one calls runjob_shutdown(), only those that it
 *          is in. Sets do not outlive the job: a later runjob_init() begins without them.
 * join     concerns the whole job only. Symmetric memory is ordinary memory for operations of a set.
 */

/*
 * runjob_init(), and adds `count` sets: set i has sizes[i] ranks, which come one set after the other in `ranks`; all ranks give the
 * same. A set that cannot be added is an error, but the job is joined, and has the other sets. When already initialised: nothing.
 */
RUNJOB_API runjob_code runjob_init_with_process_sets(const int32_t* ranks, const int32_t* sizes, int32_t count,
                                                     int32_t dynamic);

/*
 * RUNJOB_INVALID_ARGUMENT for no ranks, unknown or repeated ones, and ranks that are a set already (as all ranks of the job are);
 * RUNJOB_MISMATCH when the ranks ask for different changes: names them; RUNJOB_UNAVAILABLE when they cannot connect.
 */
RUNJOB_API runjob_code runjob_process_set_add(const int32_t* ranks, int32_t count, int32_t* id);
/* Operations in flight in it end with RUNJOB_ABORTED. */
RUNJOB_API runjob_code runjob_process_set_remove(int32_t id);

/* -1 when there is no such set or no job. */
RUNJOB_API int runjob_process_set_size(int32_t id);
/* This rank's index among the set's ranks; -1 when it is not in it, too. */
RUNJOB_API int runjob_process_set_rank(int32_t id);

/* Ascending, as many as there is `room` for; `count` gets how many there are. */
RUNJOB_API runjob_code runjob_process_set_ids(int32_t* ids, int32_t room, int32_t* count);
RUNJOB_API runjob_code runjob_process_set_ranks(int32_t id, int32_t* ranks, int32_t room, int32_t* count);

/* 1 when done (also when failed), 0 when not, -1 for an unknown handle. */
RUNJOB_API int runjob_poll(runjob_handle handle);

/*
 * Blocks until the operation is done and returns its outcome; `timeout_seconds` < 0 waits for ever, else RUNJOB_IN_PROGRESS
 * after that time. May be called by several threads and again later.
 */
RUNJOB_API runjob_code runjob_wait(runjob_handle handle, double timeout_seconds);

/*
 * `notify` is called with `context`, once, when the operation is done: on a thread of the runtime, or at once in this one when it is done
 * already. Others wait meanwhile: it only leaves a word for a thread of the caller's, neither blocks nor calls anything of this
 * interface. One for each operation. Releasing the handle does not take it back.
 */
RUNJOB_API runjob_code runjob_on_done(runjob_handle handle, void (*notify)(void* context), void* context);

/* The result of a done allgather, alltoall, reducescatter or join: dense, in the caller's room or lent until runjob_release(). */
RUNJOB_API runjob_code runjob_output(runjob_handle handle, const void** data, const int64_t** shape, int32_t* ndim);

/* How many rows of a done alltoall's result came from each rank; lent until runjob_release(). */
RUNJOB_API runjob_code runjob_received_splits(runjob_handle handle, const int64_t** splits, int32_t* nsplits);

/* Forgets a handle. Releasing one that is not done is allowed; its buffers stay lent until it is. */
RUNJOB_API void runjob_release(runjob_handle handle);

/*
 * Memory for buffers that collectives can work on directly: where all ranks are on one host, it is mapped into all of them.
 * An allreduce of which input and output, which may be one, are in it on every rank moves half of the bytes or fewer; the other
 * operations gain when the inputs are. Anywhere else, and in other jobs, it is memory like any other.
 *
 * What    at least `bytes` bytes, which may be 0, aligned to a page, their contents undefined. Any part of it may be a buffer, and a
 *         buffer may be anywhere in it: places and sizes need not be alike on the ranks, nor all ranks allocate at all.
 * Life    until runjob_symmetric_free(). It outlives runjob_shutdown(), and is ordinary memory for jobs that are joined later.
 * Fork    a child sees this process's memory and what either writes, as with MAP_SHARED; it cannot free it.
 * Errors  RUNJOB_NOT_INITIALIZED, RUNJOB_UNAVAILABLE: no memory. To free what was not allocated: RUNJOB_INVALID_ARGUMENT; NULL
 *         is allowed. Operations that use the memory must be done before it is freed.
 */
RUNJOB_API runjob_code runjob_symmetric_alloc(size_t bytes, void** memory);
RUNJOB_API runjob_code runjob_symmetric_free(void* memory);

/*
 * What this build can do, as a JSON document that lists every backend with its version and path or the reason why it
 * is absent. Lent until the next call in this thread. Needs no init.
 */
RUNJOB_API const char* runjob_backends_json(void);

/*
 * What this rank has sent to agree with the others on what to run, since init, as a JSON object of numbers:
 *   control_messages  over its connection to rank 0, or rank 0's to all. In a steady step only where there are no rounds: with Gloo
 *                     alone.
 *   rounds            in which all ranks said what was submitted to them; rounds_with_data: those that needed nothing else, since
 *                     a small operation's data went along; planned_rounds: those in which all ranks said the same bucket of
 *                     operations with one number, since the step repeats.
 *   host_messages     from host to host for rounds, and host_bytes: 0 but for the lowest rank of each host.
 * NULL when not initialised. Lent until the next call in this thread.
 */
RUNJOB_API const char* runjob_statistics_json(void);

#ifdef __cplusplus
}
#endif

#endif /* RUNJOB_RUNJOB_H_ */
