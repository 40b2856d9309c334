#pragma once

/// runjob's runtime for C++20: collectives on spans of numbers, over the C interface. Only this header is compiled into
/// a program, so a program that was built once runs with every later librunjob.
///
///     runjob::init();
///     runjob::Communicator world;
///     std::vector<float> gradient = ...;
///     world.allreduce(std::span(gradient), "gradient", runjob::ReduceOp::average);
///     runjob::shutdown();
///
/// All ranks call the same operations with the same names, in any order. Each operation has a blocking form and one
/// with the suffix `_async`, which returns a Handle at once.
///
/// Owner    The spans given to an operation are lent until it is done.
/// Threads  Every function may be called from any thread, except that init() and shutdown() must not overlap.
/// GPUs     gpu.hpp has the collectives on a GPU's memory.
/// Errors   Every function throws Error. An error that ends an operation after it was submitted is thrown by its
///          Handle's wait().

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <runjob/runjob.h>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace runjob {
inline namespace v0 {

/// A failure: its kind, and a text that names the tensor and the ranks.
class Error : public std::runtime_error {
 public:
  Error(runjob_code code, const char* message) : std::runtime_error(message), code_(code) {}
  runjob_code code() const { return code_; }

 private:
  runjob_code code_;
};

/// The bits of a 16-bit floating-point number, for buffers. Arithmetic is left to the caller.
struct Float16 {
  std::uint16_t bits = 0;
};
struct Bfloat16 {
  std::uint16_t bits = 0;
};

enum class ReduceOp {
  average = RUNJOB_AVERAGE,
  sum = RUNJOB_SUM,
  min = RUNJOB_MIN,
  max = RUNJOB_MAX,
  product = RUNJOB_PRODUCT
};

/// Factors before and after a reduction: postscale * reduce(prescale * input).
struct Scaling {
  double prescale = 1;
  double postscale = 1;
};

namespace detail {

template <class T>
struct DTypeOf;
template <runjob_dtype value>
struct DTypeIs {
  static constexpr runjob_dtype dtype = value;
};
template <>
struct DTypeOf<std::uint8_t> : DTypeIs<RUNJOB_UINT8> {};
template <>
struct DTypeOf<std::int8_t> : DTypeIs<RUNJOB_INT8> {};
template <>
struct DTypeOf<std::uint16_t> : DTypeIs<RUNJOB_UINT16> {};
template <>
struct DTypeOf<std::int16_t> : DTypeIs<RUNJOB_INT16> {};
template <>
struct DTypeOf<std::int32_t> : DTypeIs<RUNJOB_INT32> {};
template <>
struct DTypeOf<std::int64_t> : DTypeIs<RUNJOB_INT64> {};
template <>
struct DTypeOf<Float16> : DTypeIs<RUNJOB_FLOAT16> {};
template <>
struct DTypeOf<Bfloat16> : DTypeIs<RUNJOB_BFLOAT16> {};
template <>
struct DTypeOf<float> : DTypeIs<RUNJOB_FLOAT32> {};
template <>
struct DTypeOf<double> : DTypeIs<RUNJOB_FLOAT64> {};
template <>
struct DTypeOf<bool> : DTypeIs<RUNJOB_BOOL> {};

inline void check(runjob_code code) {
  if (code != RUNJOB_OK) throw Error(code, runjob_error_message());
}

inline std::int64_t same_size(const std::string& name, std::size_t in, std::size_t out) {
  if (in == out) return static_cast<std::int64_t>(in);
  throw Error(RUNJOB_INVALID_ARGUMENT, ("allreduce '" + name + "': input and output differ in size").c_str());
}

template <class T>
std::int64_t bytes_of(std::span<T> buffer) {
  return static_cast<std::int64_t>(buffer.size_bytes());
}

/// The shape of `count` elements in rows of `row` elements.
inline std::array<std::int64_t, 2> rows(const char* operation, const std::string& name, std::size_t count,
                                        std::int64_t row) {
  if (row < 1 || static_cast<std::int64_t>(count) % row != 0)
    throw Error(RUNJOB_INVALID_ARGUMENT, (operation + (" '" + name) + "': not a whole number of rows").c_str());
  return {static_cast<std::int64_t>(count) / row, row};
}

/// The operation `kind` without its tensors. `name` is lent.
inline runjob_operation described(runjob_kind kind, const std::string& name, int process_set) {
  runjob_operation operation{};
  operation.size = sizeof operation;
  operation.name = name.c_str();
  operation.kind = kind;
  operation.prescale = operation.postscale = 1;
  operation.process_set = process_set;
  return operation;
}

inline runjob_operation reduction(runjob_kind kind, const std::string& name, int process_set, ReduceOp op,
                                  Scaling scaling) {
  runjob_operation operation = described(kind, name, process_set);
  operation.op = static_cast<std::int32_t>(op);
  operation.prescale = scaling.prescale;
  operation.postscale = scaling.postscale;
  return operation;
}

inline runjob_operation alltoall(const std::string& name, int process_set, std::span<const std::int64_t> splits) {
  runjob_operation operation = described(RUNJOB_ALLTOALL, name, process_set);
  operation.splits = splits.empty() ? nullptr : splits.data();
  operation.nsplits = static_cast<std::int32_t>(splits.size());
  return operation;
}

/// `shape` has one extent or two; rows of one element are a tensor of one dimension. All spans are lent.
template <class T>
runjob_tensor tensor_of(std::span<const T> in, std::span<T> out, std::span<const std::int64_t> shape) {
  const bool is_flat = shape.size() == 1 || shape[1] == 1;
  return {in.data(), out.data(), bytes_of(out), shape.data(), is_flat ? 1 : 2, DTypeOf<T>::dtype};
}

inline runjob_handle submit(const runjob_operation& operation) {
  runjob_handle handle = 0;
  check(runjob_submit(&operation, &handle));
  return handle;
}
inline runjob_handle submit(runjob_operation operation, const runjob_tensor& tensor) {
  operation.tensors = &tensor;
  operation.count = 1;
  return submit(operation);
}
/// Runs an operation that leaves no result or fills its output to the last byte.
inline void run(const runjob_operation& operation) {
  constexpr double kForEver = -1;
  check(runjob_run(&operation, kForEver, nullptr));
}
inline void run(runjob_operation operation, const runjob_tensor& tensor) {
  operation.tensors = &tensor;
  operation.count = 1;
  run(operation);
}

}  // namespace detail

/// The element types of collectives: 8- to 64-bit integers (except uint32 and uint64), float, double, the two 16-bit
/// floats, and bool.
template <class T>
concept Element = requires {
  detail::DTypeOf<T>::dtype;
};

/// Joins the job; without a launcher, the job is this process alone. Does nothing when already initialised. Blocks
/// until all ranks have called it, at most for the job's start timeout.
inline void init() {
  detail::check(runjob_init());
}

/// Leaves the job. Operations in flight end with RUNJOB_ABORTED, on the other ranks too. Never waits longer than a
/// second.
inline void shutdown() {
  detail::check(runjob_shutdown());
}

inline bool is_initialized() {
  return runjob_is_initialized() == 1;
}

/// `count` elements, uninitialised, in symmetric memory, which collectives can use directly: see
/// runjob_symmetric_alloc(). Move-only.
/// Owner   the caller. It may outlive the job, but no operation may be using it when it is destroyed.
/// Errors  its constructor throws Error: RUNJOB_NOT_INITIALIZED, RUNJOB_UNAVAILABLE.
template <Element T>
class SymmetricBuffer {
 public:
  SymmetricBuffer() = default;
  explicit SymmetricBuffer(std::size_t count) : count_(count) {
    if (count > PTRDIFF_MAX / sizeof(T)) throw Error(RUNJOB_INVALID_ARGUMENT, "a buffer of too many elements");
    void* memory = nullptr;
    detail::check(runjob_symmetric_alloc(count * sizeof(T), &memory));
    data_ = static_cast<T*>(memory);
  }
  SymmetricBuffer(SymmetricBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  SymmetricBuffer& operator=(SymmetricBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~SymmetricBuffer() { static_cast<void>(runjob_symmetric_free(data_)); }

  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + count_; }
  T& operator[](std::size_t index) const { return data_[index]; }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// An operation in flight or done. Move-only. Its destructor waits until the operation is done, because the buffers are
/// usually about to be destroyed too.
class Handle {
 public:
  Handle() = default;
  explicit Handle(runjob_handle handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, 0);
    }
    return *this;
  }
  ~Handle() { reset(); }

  bool done() const { return runjob_poll(handle_) == 1; }

  /// Blocks until the operation is done. May be called again.
  void wait() const { detail::check(runjob_wait(handle_, -1)); }

  /// Makes the later work of `stream`, a cudaStream_t, wait for an operation on a GPU. Returns when the operation is
  /// launched there, and does not wait for the GPU: see runjob_wait_on_stream().
  void wait_on_stream(void* stream) const { detail::check(runjob_wait_on_stream(handle_, stream, -1)); }

  /// Returns false when the operation is not done after `timeout`.
  bool wait_for(std::chrono::duration<double> timeout) const {
    const runjob_code code = runjob_wait(handle_, timeout.count() < 0 ? 0 : timeout.count());
    if (code == RUNJOB_IN_PROGRESS) return false;
    detail::check(code);
    return true;
  }

 protected:
  runjob_handle get() const { return handle_; }

 private:
  void reset() {
    if (handle_ == 0) return;
    static_cast<void>(runjob_wait(handle_, -1));
    runjob_release(std::exchange(handle_, 0));
  }

  runjob_handle handle_ = 0;
};

/// An operation in flight or done whose result the library holds: allgather, alltoall, reducescatter.
template <Element T>
class GatherHandle : public Handle {
 public:
  using Handle::Handle;

  /// Waits until the operation is done and returns the elements of its result. They are lent as long as this object
  /// lives.
  std::span<const T> values() const {
    wait();
    const void* data = nullptr;
    const std::int64_t* shape = nullptr;
    std::int32_t ndim = 0;
    detail::check(runjob_output(get(), &data, &shape, &ndim));
    std::size_t count = 1;
    for (std::int32_t i = 0; i < ndim; ++i) count *= static_cast<std::size_t>(shape[i]);
    return {static_cast<const T*>(data), count};
  }

  /// Waits until the operation is done and returns the extents of its result.
  std::vector<std::int64_t> shape() const {
    wait();
    const void* data = nullptr;
    const std::int64_t* shape = nullptr;
    std::int32_t ndim = 0;
    detail::check(runjob_output(get(), &data, &shape, &ndim));
    return {shape, shape + ndim};
  }
};

/// As the peer of a receive: any rank of the set.
inline constexpr int any_rank = -1;

/// A receive in flight or done.
class ReceiveHandle : public Handle {
 public:
  using Handle::Handle;

  struct Received {
    int peer;           ///< the sender, as a rank of the set
    std::size_t bytes;  ///< of the message
  };
  /// Waits until the message is there.
  Received received() const {
    wait();
    std::int32_t peer = 0;
    std::int64_t bytes = 0;
    detail::check(runjob_received_from(get(), &peer, &bytes));
    return {peer, static_cast<std::size_t>(bytes)};
  }
};

/// Some of the job's ranks, among which collectives run: see runjob_process_set_add(). A value; cheap to copy.
class ProcessSet {
 public:
  /// The set of all ranks of the job.
  ProcessSet() = default;
  explicit ProcessSet(std::int32_t id) : id_(id) {}

  /// The set's id, the same on all ranks.
  std::int32_t id() const { return id_; }
  /// The number of ranks; -1 when the set no longer exists.
  int size() const { return id_ == 0 ? runjob_size() : runjob_process_set_size(id_); }
  /// This rank's index in the set; -1 when it is not in the set.
  int rank() const { return id_ == 0 ? runjob_rank() : runjob_process_set_rank(id_); }
  bool included() const { return rank() >= 0; }
  /// The set's ranks in ascending order.
  /// Errors  Error when the set does not exist.
  std::vector<std::int32_t> ranks() const {
    std::int32_t count = 0;
    detail::check(runjob_process_set_ranks(id_, nullptr, 0, &count));
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(count));
    detail::check(runjob_process_set_ranks(id_, ranks.data(), count, &count));
    return ranks;
  }

  friend bool operator==(const ProcessSet&, const ProcessSet&) = default;

 private:
  std::int32_t id_ = 0;
};

/// Joins the job as init() does and adds these process sets, with the ids 1, 2 and so on in their order. With
/// `dynamic`, sets may be added and removed later.
inline void init(const std::vector<std::vector<std::int32_t>>& process_sets, bool dynamic = false) {
  std::vector<std::int32_t> ranks, sizes;
  for (const std::vector<std::int32_t>& each : process_sets) {
    ranks.insert(ranks.end(), each.begin(), each.end());
    sizes.push_back(static_cast<std::int32_t>(each.size()));
  }
  detail::check(runjob_init_with_process_sets(ranks.data(), sizes.data(), static_cast<std::int32_t>(sizes.size()),
                                              dynamic ? 1 : 0));
}

/// All ranks of the job call add_process_set() and remove_process_set() with the same arguments and in the same order;
/// both block until all ranks have called.
inline ProcessSet add_process_set(std::span<const std::int32_t> ranks) {
  std::int32_t id = 0;
  detail::check(runjob_process_set_add(ranks.data(), static_cast<std::int32_t>(ranks.size()), &id));
  return ProcessSet(id);
}
inline void remove_process_set(ProcessSet set) {
  detail::check(runjob_process_set_remove(set.id()));
}

/// The ranks that take part in a collective: all of the job, or those of a process set. "All ranks" below means these.
/// Roots are ranks of the job. A value; cheap to copy.
class Communicator {
 public:
  /// Errors  Error(RUNJOB_NOT_INITIALIZED).
  explicit Communicator(ProcessSet set = {}) : set_(set) {
    if (!is_initialized()) throw Error(RUNJOB_NOT_INITIALIZED, "runjob is not initialized: call init() first");
  }

  ProcessSet process_set() const { return set_; }
  /// This rank's index among the ranks that take part.
  int rank() const { return set_.rank(); }
  int size() const { return set_.size(); }
  // The next four values concern the whole job, even for a process set.
  int local_rank() const { return runjob_local_rank(); }
  int local_size() const { return runjob_local_size(); }
  int cross_rank() const { return runjob_cross_rank(); }
  int cross_size() const { return runjob_cross_size(); }

  /// out[i] = postscale * op over all ranks of (prescale * in[i]). `in` and `out` have the same size, equal on all
  /// ranks. They may be the same span, but must not overlap otherwise.
  template <Element T>
  Handle allreduce_async(std::span<const T> in, std::span<T> out, const std::string& name, ReduceOp op = ReduceOp::sum,
                         Scaling scaling = {}) const {
    const std::int64_t extent = detail::same_size(name, in.size(), out.size());
    return Handle(detail::submit(detail::reduction(RUNJOB_ALLREDUCE, name, set_.id(), op, scaling),
                                 detail::tensor_of(in, out, std::span(&extent, 1))));
  }
  template <Element T>
  Handle allreduce_async(std::span<T> in_place, const std::string& name, ReduceOp op = ReduceOp::sum,
                         Scaling scaling = {}) const {
    return allreduce_async(std::span<const T>(in_place), in_place, name, op, scaling);
  }
  template <Element T>
  void allreduce(std::span<const T> in, std::span<T> out, const std::string& name, ReduceOp op = ReduceOp::sum,
                 Scaling scaling = {}) const {
    const std::int64_t extent = detail::same_size(name, in.size(), out.size());
    detail::run(detail::reduction(RUNJOB_ALLREDUCE, name, set_.id(), op, scaling),
                detail::tensor_of(in, out, std::span(&extent, 1)));
  }
  template <Element T>
  void allreduce(std::span<T> in_place, const std::string& name, ReduceOp op = ReduceOp::sum,
                 Scaling scaling = {}) const {
    allreduce(std::span<const T>(in_place), in_place, name, op, scaling);
  }

  /// Copies `buffer` of rank `root` to all ranks, where it must have the same size.
  template <Element T>
  Handle broadcast_async(std::span<T> buffer, int root, const std::string& name) const {
    const auto extent = static_cast<std::int64_t>(buffer.size());
    return Handle(detail::submit(broadcast_from(root, name),
                                 detail::tensor_of(std::span<const T>(buffer), buffer, std::span(&extent, 1))));
  }
  template <Element T>
  void broadcast(std::span<T> buffer, int root, const std::string& name) const {
    const auto extent = static_cast<std::int64_t>(buffer.size());
    detail::run(broadcast_from(root, name),
                detail::tensor_of(std::span<const T>(buffer), buffer, std::span(&extent, 1)));
  }

  /// Concatenates the ranks' spans in rank order; their sizes may differ. With `row` above 1 the span is a matrix with
  /// rows of `row` elements, the same on all ranks. The result is written to `out` if it fits there; otherwise the
  /// handle holds it.
  template <Element T>
  GatherHandle<T> allgather_async(std::span<const T> in, const std::string& name, std::int64_t row = 1,
                                  std::span<T> out = {}) const {
    const auto shape = detail::rows("allgather", name, in.size(), row);
    return GatherHandle<T>(
        detail::submit(detail::described(RUNJOB_ALLGATHER, name, set_.id()), detail::tensor_of(in, out, shape)));
  }
  template <Element T>
  requires(!std::same_as<T, bool>)  // a std::vector<bool> is not an array of bools: use allgather_async()
      std::vector<T> allgather(std::span<const T> in, const std::string& name, std::int64_t row = 1)
  const {
    const GatherHandle<T> gathered = allgather_async(in, name, row);
    const std::span<const T> values = gathered.values();
    return {values.begin(), values.end()};
  }
  /// Blocking form that writes to `out`.
  /// Errors  Error(RUNJOB_INVALID_ARGUMENT) when the result has another size than `out`.
  template <Element T>
  void allgather(std::span<const T> in, std::span<T> out, const std::string& name) const {
    const auto shape = detail::rows("allgather", name, in.size(), 1);
    detail::run(detail::described(RUNJOB_ALLGATHER, name, set_.id()), detail::tensor_of(in, out, shape));
  }

  /// Sends `splits[r]` rows to rank r, the first rows to rank 0; without `splits`, the same number to each rank. The
  /// received rows are concatenated in rank order. `row` and `out` as for allgather_async().
  template <Element T>
  GatherHandle<T> alltoall_async(std::span<const T> in, const std::string& name,
                                 std::span<const std::int64_t> splits = {}, std::int64_t row = 1,
                                 std::span<T> out = {}) const {
    const auto shape = detail::rows("alltoall", name, in.size(), row);
    return GatherHandle<T>(
        detail::submit(detail::alltoall(name, set_.id(), splits), detail::tensor_of(in, out, shape)));
  }

  /// Blocking form that writes to `out`.
  /// Errors  Error(RUNJOB_INVALID_ARGUMENT) when the result has another size than `out`.
  template <Element T>
  void alltoall(std::span<const T> in, std::span<T> out, const std::string& name,
                std::span<const std::int64_t> splits = {}) const {
    const auto shape = detail::rows("alltoall", name, in.size(), 1);
    detail::run(detail::alltoall(name, set_.id(), splits), detail::tensor_of(in, out, shape));
  }

  /// Reduces as allreduce_async() does and gives each rank its part of the rows: rank 0 gets the first rows, and the
  /// first ranks get one row more when the rows cannot be divided evenly. `row` and `out` as for allgather_async().
  template <Element T>
  GatherHandle<T> reducescatter_async(std::span<const T> in, const std::string& name, ReduceOp op = ReduceOp::sum,
                                      Scaling scaling = {}, std::int64_t row = 1, std::span<T> out = {}) const {
    const auto shape = detail::rows("reducescatter", name, in.size(), row);
    return GatherHandle<T>(detail::submit(detail::reduction(RUNJOB_REDUCESCATTER, name, set_.id(), op, scaling),
                                          detail::tensor_of(in, out, shape)));
  }

  /// Blocking form that writes to `out`.
  /// Errors  Error(RUNJOB_INVALID_ARGUMENT) when the result has another size than `out`.
  template <Element T>
  void reducescatter(std::span<const T> in, std::span<T> out, const std::string& name, ReduceOp op = ReduceOp::sum,
                     Scaling scaling = {}) const {
    const auto shape = detail::rows("reducescatter", name, in.size(), 1);
    detail::run(detail::reduction(RUNJOB_REDUCESCATTER, name, set_.id(), op, scaling),
                detail::tensor_of(in, out, shape));
  }

  /// Announces that this rank has no more data: it contributes zeros to the allreduces of the others until all ranks
  /// have joined. Returns the rank that joined last. Concerns the whole job, whatever the process set. See
  /// runjob_join().
  int join() const {
    const GatherHandle<std::int32_t> joined(detail::submit(detail::described(RUNJOB_JOIN, "", 0)));
    return static_cast<int>(joined.values()[0]);
  }

  /// The handle is done when all ranks have arrived.
  Handle barrier_async(const std::string& name) const {
    return Handle(detail::submit(detail::described(RUNJOB_BARRIER, name, set_.id())));
  }
  void barrier(const std::string& name) const { detail::run(detail::described(RUNJOB_BARRIER, name, set_.id())); }

  /// Sends a message to one rank of the set, which receives it: see runjob_send_async(). The buffer is lent until the
  /// handle is done.
  template <class T>
  Handle send_async(std::span<const T> buffer, int peer, std::int64_t tag = 0) const {
    runjob_handle handle = 0;
    detail::check(runjob_send_async(buffer.data(), detail::bytes_of(buffer), peer, tag, set_.id(), &handle));
    return Handle(handle);
  }
  /// `peer` may be any_rank. A message may be shorter than the buffer.
  template <class T>
  ReceiveHandle recv_async(std::span<T> buffer, int peer, std::int64_t tag = 0) const {
    runjob_handle handle = 0;
    detail::check(runjob_recv_async(buffer.data(), detail::bytes_of(buffer), peer, tag, set_.id(), &handle));
    return ReceiveHandle(handle);
  }

 private:
  runjob_operation broadcast_from(int root, const std::string& name) const {
    runjob_operation operation = detail::described(RUNJOB_BROADCAST, name, set_.id());
    operation.root = root;
    return operation;
  }

  ProcessSet set_;
};

}  // namespace v0
}  // namespace runjob
