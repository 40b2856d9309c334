#ifndef RUNJOB_RUNJOB_H_
#define RUNJOB_RUNJOB_H_

/*
 * runjob's runtime for C, and the ABI that every language binding uses.
 *
 * Stable   A program that was built once with this header runs with every later librunjob.so.0. New versions add
 *          functions and values; they remove none, and change neither values nor their meanings. A struct keeps its
 *          fields, and its size too, unless its first field is `size`: such a struct may grow at its end. All symbols
 *          have the version RUNJOB_0. A change that breaks these rules would make librunjob.so.1. A program that was
 *          built with a newer header than the library's also starts, as long as it calls no function that the library
 *          lacks; runjob_version() returns the library's version.
 * Threads  Every function may be called from any thread at any time, except that init and shutdown must not overlap
 *          each other. The library runs two callbacks of its user: that of runjob_on_done(), and a runjob_exchange.
 * Errors   Functions return a runjob_code. runjob_error_message() returns the text of the last failure in the calling
 *          thread. No function throws, aborts, or writes to standard output.
 * Fork     In a child of fork() every function except init returns RUNJOB_NOT_INITIALIZED. None hangs.
 */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RUNJOB_API __attribute__((visibility("default")))
#else
#define RUNJOB_API
#endif

/* The version of this header. runjob_version() returns the version of the library that a program runs with. */
#define RUNJOB_VERSION_MAJOR 0
#define RUNJOB_VERSION_MINOR 1
#define RUNJOB_VERSION_PATCH 0
/* For comparisons: RUNJOB_VERSION >= 200 means 0.2.0 or later. */
#define RUNJOB_VERSION (RUNJOB_VERSION_MAJOR * 10000 + RUNJOB_VERSION_MINOR * 100 + RUNJOB_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

typedef enum runjob_code {
  RUNJOB_OK = 0,
  RUNJOB_INVALID_ARGUMENT = 1, /* can never succeed: bad dtype for the operation, duplicate name in flight, bad root */
  RUNJOB_NOT_INITIALIZED = 2,  /* runjob_init() has not succeeded, or runjob_shutdown() was called */
  /* ranks disagree on a tensor's shape, dtype, kind, op, root or scale; the text names tensor and ranks */
  RUNJOB_MISMATCH = 3,
  RUNJOB_PEER_LOST = 4, /* another rank is lost; the text names it */
  RUNJOB_TIMEOUT = 5,
  RUNJOB_ABORTED = 6,     /* ended by a shutdown, on this rank or another */
  RUNJOB_UNAVAILABLE = 7, /* no backend can run it; the text gives the reason */
  RUNJOB_CONNECT = 8,     /* the rendezvous or a rank could not be reached */
  RUNJOB_IN_PROGRESS = 9, /* returned by runjob_wait() with a timeout: the operation is not done yet */
  RUNJOB_INTERNAL = 10
} runjob_code;

/* The numbers are Horovod's, except BFLOAT16, which Horovod lacks. Sizes: 1 1 2 2 4 8 2 4 8 1 2 bytes. */
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

/* The numbers are Horovod's. 2 is reserved for Adasum. */
typedef enum runjob_reduce_op {
  RUNJOB_AVERAGE = 0,
  RUNJOB_SUM = 1,
  RUNJOB_MIN = 3,
  RUNJOB_MAX = 4,
  RUNJOB_PRODUCT = 5
} runjob_reduce_op;

/* An operation in flight or done. It is positive, unique in the process, and valid until runjob_release(). */
typedef int64_t runjob_handle;

RUNJOB_API const char* runjob_version(void); /* the library's version: "0.1.0" */
RUNJOB_API const char* runjob_error_message(void);

/*
 * Joins the job. The rendezvous named by RUNJOB_RENDEZVOUS assigns this process its rank, and the ranks connect to each
 * other. Without that variable the job consists of the processes that mpirun or srun started, found through PMIx or
 * PMI. Without those it consists of this process alone (size 1).
 * A second call without a shutdown in between does nothing. After runjob_shutdown() it may be called again, any number
 * of times, as long as all ranks do so. Blocks until all ranks have called it, at most for the job's start timeout.
 */
RUNJOB_API runjob_code runjob_init(void);

/*
 * Leaves the job. Operations in flight end with RUNJOB_ABORTED, on the other ranks too, because they cannot complete
 * without this rank; those launched on GPUs complete if this rank's GPU has done its part within 0.8 seconds. Waits a
 * second at most, and up to 5 seconds more while another host has not acknowledged this rank's last bytes, as after an
 * interruption of the network. Does nothing when not initialised.
 */
RUNJOB_API runjob_code runjob_shutdown(void);
/*
 * The same for a program that ends, for example from a function of atexit(): ranks that still wait for this one get the
 * error that its program ended, instead of the error that it called runjob_shutdown().
 */
RUNJOB_API runjob_code runjob_shutdown_at_exit(void);
RUNJOB_API int runjob_is_initialized(void);

/*
 * Reports to the launcher that this rank is about to end because of its own error. `reason` is one line for people.
 * Called before runjob_shutdown(), it makes the launcher name this rank as the one that failed first, even if other
 * ranks end sooner, and the errors of ranks that wait for this one contain `reason`. A rank that fails only because
 * another one left does not need to call it. Does nothing when not initialised. Does not wait for other ranks.
 */
RUNJOB_API runjob_code runjob_failing(const char* reason);

/*
 * Elastic jobs go on with other ranks when some are lost or added. The ranks of one composition are a generation. A
 * process that comes later gets from runjob_init() at once the place that it is meant to have, connects to nobody, and
 * can run no collective before its first runjob_elastic_meet().
 *
 * A program calls runjob_elastic_enter() once, then meets when it belongs to no generation yet, after the loss of a
 * rank, and when all ranks have seen in the same step that an update is pending.
 */
RUNJOB_API int runjob_elastic(void);    /* 1 in an elastic job, else 0; -1 when not initialised */
RUNJOB_API int runjob_generation(void); /* -1 when not initialised, and while this process belongs to none */
/* Receives the launcher's notices from now on, on a thread of its own. Does nothing in a job that is not elastic. */
RUNJOB_API runjob_code runjob_elastic_enter(void);
/*
 * Leaves the present generation, which ends on the other ranks too, and blocks until this process is a member of the
 * next one. `commit` is the number of the newest state that this process can restore, -1 for none. `reason` is an error
 * of this process's own, because of which its generation cannot go on; NULL for none. After RUNJOB_ABORTED the process
 * is to be a member of no other generation; the text gives the reason.
 */
RUNJOB_API runjob_code runjob_elastic_meet(int64_t commit, const char* reason);
/*
 * For the status file: the next runjob_elastic_meet() reports that this process has begun so many steps since the state
 * with which it comes, and that they are done again. Without this call the number is unknown. Less than 0: unknown.
 */
RUNJOB_API runjob_code runjob_elastic_steps(int64_t steps);
/*
 * Reads what the launcher asks of this process: into `update` 0, or 1 when processes were only added, 2 when some are
 * to leave; then all ranks are to meet. Into `leaving` 1 when this process is to end with status 0 instead.
 */
RUNJOB_API runjob_code runjob_elastic_pending(int32_t* update, int32_t* leaving);
/* Fills `commits`, one for each rank, with the numbers that the ranks have brought to the meeting; -1 for none. */
RUNJOB_API runjob_code runjob_elastic_commits(int64_t* commits);
/*
 * Gives the state of rank 0 to the ranks that lack it, in a job of fixed size too. All ranks call it, with the same
 * `bytes` of `count` blocks; otherwise RUNJOB_MISMATCH. The `blocks` are read on rank 0 and written where `lacks` is 1.
 * On the other ranks they may be NULL: these only wait for the end. Blocks until the state is there. Of a rank that is
 * lost meanwhile all ranks have an error, and a rank that lacks the state may have a part of it.
 */
RUNJOB_API runjob_code runjob_elastic_transfer(void* const* blocks, const int64_t* bytes, int32_t count, int32_t lacks);

/*
 * Starts a trace of the collectives, in a format for Perfetto and chrome://tracing, in the file `path` of rank 0. A
 * trace that is being written ends first. Without `all_ranks` only rank 0 needs to call it; calls on other ranks have
 * no effect. With `all_ranks` every rank must call it, and the trace has a track for each rank. `mark_cycles` marks
 * each round of negotiation. The file is at most RUNJOB_TIMELINE_MAX_MB long. May be called from any thread.
 */
RUNJOB_API runjob_code runjob_start_timeline(const char* path, int mark_cycles, int all_ranks);
/*
 * Writes the rest of the trace and closes it. Does nothing when there is no trace. With a track for each rank, rank 0
 * waits at most a second for the other ranks to stop too, so that their last records are in the file.
 */
RUNJOB_API runjob_code runjob_stop_timeline(void);

/* This rank's position in the job; -1 when not initialised. docs/developers/architecture.md defines the terms. */
RUNJOB_API int runjob_rank(void);
RUNJOB_API int runjob_size(void);
RUNJOB_API int runjob_local_rank(void);
RUNJOB_API int runjob_local_size(void);
RUNJOB_API int runjob_cross_rank(void);
RUNJOB_API int runjob_cross_size(void);
RUNJOB_API int runjob_is_homogeneous(void); /* 1 when every host has the same number of ranks */

/*
 * Collectives. Each returns at once with a handle. All ranks must submit the same names, in any order, from any thread.
 *
 * name     identifies the operation across ranks. At most one operation of a name may be in flight.
 * shape    `ndim` extents of a dense row-major buffer. ndim 0 is a scalar; an extent of 0 is allowed.
 * Owner    the buffers are lent until the handle is done; `shape` and `name` are copied.
 * Mismatch  a different dtype, shape, kind, op, scale or root ends the operation on all ranks with RUNJOB_MISMATCH; the
 *           job goes on.
 * process_set  0 for the whole job, or an id from runjob_process_set_add(). For a set, "all ranks" on this page means
 *              the ranks of the set, and "rank order" means their order; averages divide by the set's size. `root`
 *              remains a rank of the job. An operation of a set that this rank does not belong to is
 *              RUNJOB_INVALID_ARGUMENT. Each set has its own names: equal names in two sets are two operations.
 */

/*
 * output[i] = postscale * reduce over ranks of (prescale * input[i]). `input == output` is allowed; other overlap is
 * not. AVERAGE divides `postscale` by the size. Floats are multiplied by factors of float64 for FLOAT64, else of
 * float32. Integers: scaling and averaging are done in double and truncate toward zero; sums wrap. Sums of 8 and 16-bit
 * integers that are averaged or postscaled do not wrap: they accumulate in int32, which holds the sums of 32,768 ranks,
 * and the result is limited to the dtype's range. BOOL: SUM and MAX are logical or, PRODUCT and MIN are logical and;
 * AVERAGE and scaling are invalid. FLOAT16 and BFLOAT16 accumulate in float32.
 */
RUNJOB_API runjob_code runjob_allreduce_async(const char* name, const void* input, void* output, const int64_t* shape,
                                              int32_t ndim, runjob_dtype dtype, runjob_reduce_op op, double prescale,
                                              double postscale, int32_t process_set, runjob_handle* handle);

/* Reads `buffer` on `root` and writes it on the other ranks. */
RUNJOB_API runjob_code runjob_broadcast_async(const char* name, void* buffer, const int64_t* shape, int32_t ndim,
                                              runjob_dtype dtype, int32_t root, int32_t process_set,
                                              runjob_handle* handle);

/*
 * Concatenates the ranks' tensors along their first dimension, in rank order. The first extents may differ between
 * ranks; the other extents and the number of dimensions (at least 1) must be equal. The result is written to `output`,
 * which is lent like the input, if it takes at most `output_bytes`. Otherwise, or if `output` is null, the result
 * belongs to the handle. runjob_output() returns its address in both cases.
 */
RUNJOB_API runjob_code runjob_allgather_async(const char* name, const void* input, void* output, int64_t output_bytes,
                                              const int64_t* shape, int32_t ndim, runjob_dtype dtype,
                                              int32_t process_set, runjob_handle* handle);

/*
 * Sends `splits[r]` rows of the tensor's first dimension to rank r, the first rows to rank 0, and concatenates the
 * received rows in rank order. `splits` has one entry per rank; if it is null, every rank gets the same number of rows,
 * which must divide evenly. The first extents may differ between ranks; the others must be equal. `output` as for
 * allgather. See also runjob_received_splits().
 */
RUNJOB_API runjob_code runjob_alltoall_async(const char* name, const void* input, void* output, int64_t output_bytes,
                                             const int64_t* shape, int32_t ndim, const int64_t* splits, int32_t nsplits,
                                             runjob_dtype dtype, int32_t process_set, runjob_handle* handle);

/*
 * Reduces as runjob_allreduce_async() does and leaves each rank a part of the result's rows (its first dimension): rank
 * 0 gets the first rows. If the rows cannot be divided evenly, the first ranks get one row more. `output` as for
 * allgather.
 */
RUNJOB_API runjob_code runjob_reducescatter_async(const char* name, const void* input, void* output,
                                                  int64_t output_bytes, const int64_t* shape, int32_t ndim,
                                                  runjob_dtype dtype, runjob_reduce_op op, double prescale,
                                                  double postscale, int32_t process_set, runjob_handle* handle);

/* The handle is done when all ranks have submitted the barrier. */
RUNJOB_API runjob_code runjob_barrier_async(const char* name, int32_t process_set, runjob_handle* handle);

/*
 * The blocking forms. Each does what `_async` followed by runjob_wait() does, but small operations are much faster.
 * `*handle` becomes 0 when the operation is over and has left no result to fetch. Otherwise it must be released: with
 * RUNJOB_IN_PROGRESS, returned after `timeout_seconds` (< 0: no limit), it is the operation itself; with RUNJOB_OK it
 * holds a result.
 * Without a time limit, `handle` may be null if the operation leaves no result or fills `output` to the last byte; any
 * other operation is then RUNJOB_INVALID_ARGUMENT on this rank. That is the fastest form.
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

/*
 * The type in which values of FLOAT32 and FLOAT64 travel, to halve or quarter the bytes sent. Other dtypes travel
 * unchanged.
 */
typedef enum runjob_compression {
  RUNJOB_COMPRESSION_NONE = 0,
  RUNJOB_COMPRESSION_FLOAT16 = 1,
  RUNJOB_COMPRESSION_BFLOAT16 = 2
} runjob_compression;

/*
 * runjob_allreduce_async() and runjob_allreduce() with compression, which must be the same on all ranks. Values are
 * multiplied by `prescale`, rounded, and accumulated in float32. The result is rounded once more and has `dtype` again.
 * Values beyond FLOAT16's range become infinite.
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
  const void* input; /* not read by broadcast */
  /* allreduce: may be `input`; broadcast: the one buffer; other operations: room for the result, or null */
  void* output;
  int64_t output_bytes; /* size of that room */
  const int64_t* shape;
  int32_t ndim;
  int32_t dtype; /* a runjob_dtype */
} runjob_tensor;

/*
 * One operation on `count` tensors, at least 1, which may differ in shape and dtype. The group has one name and one
 * handle: it runs when all ranks have submitted it, with the same tensors in the same order, and it fails as a whole.
 * `tensors` is copied. runjob_grouped_output() returns the results of allgather and reducescatter once the group is
 * done. The blocking forms treat `handle` as those of single tensors do.
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

/*
 * A binding that copies several tensors into one operation can show them in the timeline: each of the `count` tensors
 * gets a row of its own, named `names[i]`, with the events of the allreduce `name` from its next submission on, until
 * the next call for that operation. `tensors` give shapes and dtypes only. since_ns[i], unless 0, is the time of
 * CLOCK_MONOTONIC since which the tensor has waited for the others. To be called on rank 0 before each submission; it
 * does nothing where runjob_timeline_records_tensors() returns 0.
 */
RUNJOB_API runjob_code runjob_timeline_tensors(const char* name, const char* const* names, const runjob_tensor* tensors,
                                               const int64_t* since_ns, int32_t count, int32_t process_set);
/* 1 on rank 0 while it records a timeline, otherwise 0. */
RUNJOB_API int runjob_timeline_records_tensors(void);

/* The result of the group's tensor with index `tensor`, from 0 on. Otherwise as runjob_output(). */
RUNJOB_API runjob_code runjob_grouped_output(runjob_handle handle, int32_t tensor, const void** data,
                                             const int64_t** shape, int32_t* ndim);

/* The kinds of memory that tensors lie in. */
typedef enum runjob_memory {
  RUNJOB_HOST_MEMORY = 0,
  RUNJOB_GPU_MEMORY = 1 /* of a GPU that CUDA knows; the processor need not reach it */
} runjob_memory;

/* The kinds of operations. The numbers are Horovod's. */
typedef enum runjob_kind {
  RUNJOB_ALLREDUCE = 0,
  RUNJOB_ALLGATHER = 1,
  RUNJOB_BROADCAST = 2,
  RUNJOB_JOIN = 3, /* see runjob_join_async(); the struct's other fields are not read */
  RUNJOB_ALLTOALL = 5,
  RUNJOB_BARRIER = 6, /* needs a name and a process set */
  RUNJOB_REDUCESCATTER = 7
} runjob_kind;

/*
 * One operation with all that it may need. A later version may add fields at its end: the library reads as many bytes
 * as `size` has, and takes the rest as zero. Fields that the operation does not use are not read.
 */
typedef struct runjob_operation {
  size_t size; /* sizeof(runjob_operation) */
  const char* name;
  int32_t kind;  /* a runjob_kind */
  int32_t count; /* of `tensors`; more than 1, or `is_group`: a grouped operation */
  const runjob_tensor* tensors;
  int32_t is_group;
  int32_t op; /* a runjob_reduce_op */
  double prescale, postscale;
  int32_t compression; /* a runjob_compression */
  int32_t root;
  int32_t process_set;
  int32_t nsplits;
  const int64_t* splits; /* alltoall; NULL: divided evenly */
  int32_t memory;        /* a runjob_memory: that of all tensors' inputs and outputs */
  int32_t device;        /* RUNJOB_GPU_MEMORY: CUDA's ordinal of the GPU on which all tensors lie */
  void* stream;          /* RUNJOB_GPU_MEMORY: a cudaStream_t of the caller; NULL is CUDA's default stream */
} runjob_operation;

/*
 * Submits an operation and returns at once with a handle. The functions `..._async` describe the kinds of operations;
 * each does what this one does with a struct of its arguments. The struct, its tensors, shapes and splits are copied.
 *
 * GPU      The operation begins when the work that `stream` has at this call is done, and runs on a stream of the
 *          runtime: no thread of the caller waits for the GPU. runjob_poll(), runjob_wait() and runjob_on_done() see
 *          the operation as done when the GPU has done it; runjob_wait_on_stream() does not wait for that. A result for
 *          which the caller gave no buffer lies on the GPU, and must not be used after runjob_release(). Each rank uses
 *          one GPU in a job. "On a GPU" is among the properties that the ranks must agree on; ordinals may differ.
 * Errors   come from the handle on all ranks, and the job goes on. RUNJOB_UNAVAILABLE: no driver or GPU, or a reduction
 *          that NCCL cannot express (docs/gpu.md). RUNJOB_INVALID_ARGUMENT: `stream` is being captured; no such GPU; a
 *          buffer that is not in its memory, or freed. After a failure, values on it are undefined: see runjob_check().
 */
RUNJOB_API runjob_code runjob_submit(const runjob_operation* operation, runjob_handle* handle);
/*
 * Runs an operation to its end: runjob_submit() followed by runjob_wait(), but faster for small operations.
 * `timeout_seconds` and `handle` are those of the blocking forms above, each of which does what this one does with a
 * struct of its arguments. The results of a group always need a handle.
 */
RUNJOB_API runjob_code runjob_run(const runjob_operation* operation, double timeout_seconds, runjob_handle* handle);

/*
 * Makes the later work of `stream` wait for an operation on a GPU. Returns once the operation is launched there, which
 * takes all ranks' submissions; the GPU may still be at work. The buffers remain lent until runjob_poll() returns 1.
 * With `timeout_seconds` as in runjob_wait(). An operation on host memory is done when it returns.
 */
RUNJOB_API runjob_code runjob_wait_on_stream(runjob_handle handle, void* stream, double timeout_seconds);

/*
 * Waits on the host until all operations in flight on this rank have ended, on its GPU too, and returns the error of
 * the first one that has failed, or that of the job; that another rank has left the job is none. After RUNJOB_OK the
 * values on the GPU are valid: call it before they are saved. With `timeout_seconds` as in runjob_wait():
 * RUNJOB_IN_PROGRESS when some are still in flight. A rank waits for operations that other ranks have not submitted
 * yet, so all ranks call it at the same place.
 */
RUNJOB_API runjob_code runjob_check(double timeout_seconds);

/*
 * Announces that this rank has no more data, while others may have. Until all ranks have joined, this rank contributes
 * zeros to the allreduces of the others (averages still divide by the size) and counts as arrived at their barriers;
 * their other operations end with RUNJOB_MISMATCH. Done when all ranks have joined. The result, one int32, is the rank
 * that joined last, the same on all ranks.
 */
RUNJOB_API runjob_code runjob_join_async(runjob_handle* handle);
RUNJOB_API runjob_code runjob_join(double timeout_seconds, runjob_handle* handle);

/*
 * Process sets: some of the job's ranks, among which collectives can run. Sets are independent of each other: they may
 * overlap, operations of different sets may be submitted in any order on each rank, and no set waits for ranks outside
 * of it.
 *
 * Changes  All ranks of the job call runjob_process_set_add() and _remove(), in the same order, with the same
 *          arguments. The calls block until all ranks have made them, and fail on all ranks or on none. They require
 *          RUNJOB_DYNAMIC_PROCESS_SETS=1 in the environment, or `dynamic` in runjob_init_with_process_sets().
 * Ids      start at 1 and are the same on all ranks. Freed ids are used again, the one freed first first. 0 is the
 *          whole job.
 * Life     A set lives until its removal or a shutdown. When a rank of the job fails, all sets end. When a rank calls
 *          runjob_shutdown(), only the sets that it belongs to end. Sets do not outlive the job: a later runjob_init()
 *          starts without them.
 * join     concerns the whole job only.
 * Memory   Symmetric memory serves the operations of sets as it serves those of the job.
 */

/*
 * runjob_init(), and adds `count` sets. Set i has sizes[i] ranks; `ranks` lists the ranks of one set after the other.
 * All ranks pass the same values. A set that cannot be added is an error, but the job is joined and has the other sets.
 * Does nothing when already initialised.
 */
RUNJOB_API runjob_code runjob_init_with_process_sets(const int32_t* ranks, const int32_t* sizes, int32_t count,
                                                     int32_t dynamic);

/*
 * RUNJOB_INVALID_ARGUMENT for no ranks, unknown or repeated ranks, and ranks that already form a set (all ranks of the
 * job always do). RUNJOB_MISMATCH when the ranks ask for different changes; the text names them. RUNJOB_UNAVAILABLE
 * when they cannot connect.
 */
RUNJOB_API runjob_code runjob_process_set_add(const int32_t* ranks, int32_t count, int32_t* id);
/* Operations of the set that are in flight end with RUNJOB_ABORTED. */
RUNJOB_API runjob_code runjob_process_set_remove(int32_t id);

/*
 * An exchange that the program has already, over MPI or over a store: gives `bytes` bytes at `blob` to all processes
 * that take part, and calls receive(to, rank, ...) with the blob of each, its own too; `rank` counts from 0. All of
 * them call it equally often, in the same order. The library calls it in the thread of the function that was given it,
 * and only until that function returns. Returns NULL, or a text that says why it failed, lent until the next call.
 */
typedef const char* (*runjob_exchange)(void* context, const void* blob, size_t bytes,
                                       void (*receive)(void* to, int32_t rank, const void* blob, size_t bytes),
                                       void* to);

/*
 * Joins a job that no launcher has started, or one of some of a launcher's ranks: the processes find each other by
 * `exchange`. Ranks on one host, which have one network namespace, share memory. Otherwise as
 * runjob_init_with_process_sets(), but the variables of a launcher that give a place in a job are not read. Whoever can
 * take part in the exchange can be a rank of the job.
 */
RUNJOB_API runjob_code runjob_init_with_exchange(int32_t rank, int32_t size, runjob_exchange exchange, void* context,
                                                 const int32_t* ranks, const int32_t* sizes, int32_t count,
                                                 int32_t dynamic);

/*
 * Adds a set by its members alone: the other ranks of the job do not call it, and do not know the set. `ranks` are
 * ranks of the job in the order that the set is to have; they may be all ranks, or those of another set. `exchange` is
 * one among the members, by their index in `ranks`. The id is equal on all members. The set ends by
 * runjob_process_set_remove(), which each member calls for itself, after its last operation there.
 * Errors  as runjob_process_set_add(), which needs no leave here; RUNJOB_CONNECT with the text of the exchange.
 */
RUNJOB_API runjob_code runjob_process_set_add_members(const int32_t* ranks, int32_t count, runjob_exchange exchange,
                                                      void* context, int32_t* id);

/* -1 when there is no such set or no job. */
RUNJOB_API int runjob_process_set_size(int32_t id);
/* This rank's index among the set's ranks; -1 also when this rank is not in the set. */
RUNJOB_API int runjob_process_set_rank(int32_t id);

/* Writes at most `room` entries, in ascending order; `*count` becomes the number of entries that exist. */
RUNJOB_API runjob_code runjob_process_set_ids(int32_t* ids, int32_t room, int32_t* count);
RUNJOB_API runjob_code runjob_process_set_ranks(int32_t id, int32_t* ranks, int32_t room, int32_t* count);

/*
 * Messages between two ranks of a process set. The other ranks take no part, and there is no negotiation: a send and a
 * receive are a pair when sender, `tag` and process set are equal, in the order in which each of the two ranks calls
 * them. Both return at once with a handle, for which runjob_wait() and the other functions of handles serve.
 *
 * Shape    `bytes` at `buffer`, which may be 0. A message may be shorter than the room of its receive.
 * Peers    `peer` is a rank of the set, counted from 0 in the order of the set; it may be the calling one. A receive
 *          may have -1, any rank: it takes the message that came first. runjob_received_from() returns the sender.
 * Owner    the buffer is lent until the operation is done. A send is done when its bytes have left: short messages, of
 *          32 KiB at most, do not wait for the receive, as long as less than 1 MiB of them waits at the receiver.
 * Errors   RUNJOB_INVALID_ARGUMENT at once: no such rank or set. From the handle: RUNJOB_MISMATCH when a message is
 *          longer than its receive has room for, on both ranks; if the send is done by then, another operation of the
 *          sender with this peer ends with it, in flight or the next one. RUNJOB_ABORTED when the peer has left the job
 *          or the set was removed, RUNJOB_PEER_LOST as for the other operations. Other ranks may leave meanwhile.
 * Progress While no thread of this rank waits, one of the library moves its messages.
 * Note     runjob_check() and join do not concern messages, and the timeline does not show them.
 */
RUNJOB_API runjob_code runjob_send_async(const void* buffer, int64_t bytes, int32_t peer, int64_t tag,
                                         int32_t process_set, runjob_handle* handle);
RUNJOB_API runjob_code runjob_recv_async(void* buffer, int64_t bytes, int32_t peer, int64_t tag, int32_t process_set,
                                         runjob_handle* handle);
/* The sender of a finished receive, as a rank of the set, and the length of the message. Each may be NULL. */
RUNJOB_API runjob_code runjob_received_from(runjob_handle handle, int32_t* peer, int64_t* bytes);

/* 1 when done, even if it failed; 0 when not done; -1 for an unknown handle. */
RUNJOB_API int runjob_poll(runjob_handle handle);

/*
 * Blocks until the operation is done and returns its outcome. With `timeout_seconds` < 0 there is no limit; otherwise
 * RUNJOB_IN_PROGRESS is returned after that time. Several threads may wait for one handle, and it may be waited for
 * again.
 */
RUNJOB_API runjob_code runjob_wait(runjob_handle handle, double timeout_seconds);

/*
 * Calls `notify` with `context` once, when the operation is done: on a thread of the runtime, or at once in the calling
 * thread when the operation is already done. Other ranks may be waiting meanwhile, so `notify` must only pass a
 * notification to a thread of the caller: it must neither block nor call any function of this interface. One callback
 * for each operation. Releasing the handle does not cancel it.
 */
RUNJOB_API runjob_code runjob_on_done(runjob_handle handle, void (*notify)(void* context), void* context);

/*
 * The result of a finished allgather, alltoall, reducescatter or join. It is dense, and lies in the caller's `output`
 * or is lent until runjob_release().
 */
RUNJOB_API runjob_code runjob_output(runjob_handle handle, const void** data, const int64_t** shape, int32_t* ndim);

/* The number of rows of a finished alltoall's result that came from each rank. Lent until runjob_release(). */
RUNJOB_API runjob_code runjob_received_splits(runjob_handle handle, const int64_t** splits, int32_t* nsplits);

/* Releases a handle. A handle that is not done may be released; its buffers stay lent until the operation is done. */
RUNJOB_API void runjob_release(runjob_handle handle);

/*
 * Symmetric memory: memory for buffers that collectives can use directly. Where all ranks are on one host, it is mapped
 * into all of them. An allreduce whose input and output (which may be one buffer) are in it on every rank moves at most
 * half of the bytes; the other operations gain when the inputs are. Elsewhere, and in other jobs, it is ordinary
 * memory.
 *
 * Shape   at least `bytes` bytes, which may be 0, aligned to a page, with undefined contents. A buffer may be any part
 *         of it. Positions and sizes may differ between ranks, and a rank need not allocate at all.
 * Life    until runjob_symmetric_free(). It outlives runjob_shutdown(), and is ordinary memory for jobs that are joined
 *         later.
 * Fork    A child shares this memory with its parent, as with MAP_SHARED, but cannot free it.
 * Errors  RUNJOB_NOT_INITIALIZED; RUNJOB_UNAVAILABLE when there is no memory. Freeing an address that was not allocated
 *         is RUNJOB_INVALID_ARGUMENT; NULL is allowed. Operations that use the memory must be done before it is freed.
 */
RUNJOB_API runjob_code runjob_symmetric_alloc(size_t bytes, void** memory);
RUNJOB_API runjob_code runjob_symmetric_free(void* memory);

/*
 * The capabilities of this build, as a JSON document that lists every backend with its version and path, or the reason
 * why it is absent. Lent until the next call in this thread. Requires no init.
 */
RUNJOB_API const char* runjob_backends_json(void);

/*
 * Counts of what this rank has sent since init to negotiate operations with the other ranks, as a JSON object of
 * numbers:
 *   control_messages  messages over its connection to rank 0, or from rank 0 to all. A steady step sends none.
 *   rounds            rounds in which all ranks announced what was submitted to them.
 *   rounds_with_data  rounds that completed a small operation, because its data travelled with the announcement.
 *   planned_rounds    rounds in which all ranks announced the same bucket of a plan with one number, because the step
 *                     repeats.
 *   host_messages     messages for rounds to ranks that share no memory with this one, and host_bytes, their size.
 *                     Both are 0 except on the lowest rank of each group of ranks that share memory.
 * Returns NULL when not initialised. Lent until the next call in this thread.
 */
RUNJOB_API const char* runjob_statistics_json(void);

/*
 * Proofs for serialized objects that ranks send each other, such as Python's pickles, which can run code where they are
 * read. A receiver makes the proof of the bytes that it got and compares it with the one that came with them: they are
 * equal if a rank of this job has sent these bytes in this call.
 *
 * runjob_object_number  the number of this call, which every rank of the process set that takes part asks for once.
 * runjob_object_proof   writes RUNJOB_PROOF_BYTES to `proof`. `sender`: the rank that sends the object.
 * Errors  RUNJOB_NOT_INITIALIZED.
 */
#define RUNJOB_PROOF_BYTES 32
RUNJOB_API runjob_code runjob_object_number(const char* name, int32_t process_set, int64_t* number);
RUNJOB_API runjob_code runjob_object_proof(const char* name, int32_t process_set, int32_t sender, int64_t number,
                                           const void* object, size_t bytes, unsigned char* proof);

#ifdef __cplusplus
}
#endif

#endif /* RUNJOB_RUNJOB_H_ */
