#pragma once

/// Operations on several tensors at once, and compressed ones, in addition to those of runjob.hpp:
///
///     runjob::TensorGroup gradients;
///     gradients.add(std::span(weights)).add(std::span(biases));
///     runjob::grouped_allreduce(gradients, "gradients", runjob::ReduceOp::average);
///
/// A group is one operation with one name. It runs when all ranks have submitted it, with the same number of tensors of
/// the same types and sizes in the same order, and it fails as a whole.
///
/// Owner, Threads, Errors  as in runjob.hpp.

#include <runjob/runjob.hpp>

namespace runjob {
inline namespace v0 {

/// The type in which float and double values travel; other types travel unchanged. See runjob_compression.
enum class Compression {
  none = RUNJOB_COMPRESSION_NONE,
  float16 = RUNJOB_COMPRESSION_FLOAT16,
  bfloat16 = RUNJOB_COMPRESSION_BFLOAT16
};

namespace detail {
inline runjob_operation compressed(const std::string& name, ReduceOp op, Scaling scaling, Compression compression) {
  runjob_operation operation = reduction(RUNJOB_ALLREDUCE, name, 0, op, scaling);
  operation.compression = static_cast<std::int32_t>(compression);
  return operation;
}
}  // namespace detail

/// Tensors of one dimension, which may differ in type and size. Holds no elements: the spans are lent until the
/// operation is done.
class TensorGroup {
 public:
  /// Adds a tensor that is reduced or broadcast in place.
  template <Element T>
  TensorGroup& add(std::span<T> in_place) {
    return add(std::span<const T>(in_place), in_place);
  }
  /// Adds a tensor with separate input and output. For allreduce, `out` has the size of `in`. For allgather and
  /// reducescatter the result is written to `out` if it fits there.
  template <Element T>
  TensorGroup& add(std::span<const T> in, std::span<T> out = {}) {
    tensors_.push_back(
        {in.data(), out.data(), in.size(), out.size(), detail::bytes_of(out), detail::DTypeOf<T>::dtype});
    return *this;
  }

  std::size_t size() const { return tensors_.size(); }

 private:
  friend class CTensors;
  struct Tensor {
    const void* in;
    void* out;
    std::size_t in_size, out_size;
    std::int64_t out_bytes;
    runjob_dtype dtype;
  };
  std::vector<Tensor> tensors_;
};

/// The group's tensors as the C interface takes them.
/// Owner  this object owns the extents; it must live until the C function has returned, and the group's spans as long.
class CTensors {
 public:
  /// Errors  Error(RUNJOB_INVALID_ARGUMENT), naming `name`, when input and output must have equal sizes but do not.
  CTensors(const TensorGroup& group, const std::string& name, bool is_in_place) {
    extents_.reserve(group.size());
    for (const auto& each : group.tensors_) {
      if (is_in_place) detail::same_size(name, each.in_size, each.out_size);
      extents_.push_back(static_cast<std::int64_t>(each.in_size));
      tensors_.push_back({each.in, each.out, each.out_bytes, &extents_.back(), 1, each.dtype});
    }
  }

  /// The operation on this group. The tensors are lent.
  runjob_operation group(runjob_operation operation) const {
    operation.is_group = 1;
    operation.tensors = tensors_.data();
    operation.count = static_cast<std::int32_t>(tensors_.size());
    return operation;
  }

 private:
  std::vector<std::int64_t> extents_;
  std::vector<runjob_tensor> tensors_;
};

/// A gathered or scattered group in flight or done, whose results the library holds.
class GroupHandle : public Handle {
 public:
  using Handle::Handle;

  /// Waits until the group is done and returns the elements of one tensor's result. They are lent as long as this
  /// object lives.
  template <Element T>
  std::span<const T> values(std::size_t tensor) const {
    wait();
    const void* data = nullptr;
    const std::int64_t* shape = nullptr;
    std::int32_t ndim = 0;
    detail::check(runjob_grouped_output(get(), static_cast<std::int32_t>(tensor), &data, &shape, &ndim));
    return {static_cast<const T*>(data), static_cast<std::size_t>(shape[0])};
  }
};

inline Handle grouped_allreduce_async(const TensorGroup& group, const std::string& name, ReduceOp op = ReduceOp::sum,
                                      Scaling scaling = {}, Compression compression = Compression::none) {
  const CTensors tensors(group, name, true);
  return Handle(detail::submit(tensors.group(detail::compressed(name, op, scaling, compression))));
}
inline void grouped_allreduce(const TensorGroup& group, const std::string& name, ReduceOp op = ReduceOp::sum,
                              Scaling scaling = {}, Compression compression = Compression::none) {
  const CTensors tensors(group, name, true);
  detail::run(tensors.group(detail::compressed(name, op, scaling, compression)));
}

/// Copies the tensors of rank `root` to all ranks.
inline Handle grouped_broadcast_async(const TensorGroup& group, int root, const std::string& name) {
  const CTensors tensors(group, name, true);
  runjob_operation operation = detail::described(RUNJOB_BROADCAST, name, 0);
  operation.root = root;
  return Handle(detail::submit(tensors.group(operation)));
}
inline void grouped_broadcast(const TensorGroup& group, int root, const std::string& name) {
  grouped_broadcast_async(group, root, name).wait();
}

/// Concatenates each tensor over the ranks, in rank order; a tensor's size may differ between ranks.
inline GroupHandle grouped_allgather_async(const TensorGroup& group, const std::string& name) {
  const CTensors tensors(group, name, false);
  return GroupHandle(detail::submit(tensors.group(detail::described(RUNJOB_ALLGATHER, name, 0))));
}

/// Reduces each tensor and gives each rank its part of the result: rank 0 gets the first part.
inline GroupHandle grouped_reducescatter_async(const TensorGroup& group, const std::string& name,
                                               ReduceOp op = ReduceOp::sum, Scaling scaling = {}) {
  const CTensors tensors(group, name, false);
  return GroupHandle(detail::submit(tensors.group(detail::reduction(RUNJOB_REDUCESCATTER, name, 0, op, scaling))));
}

/// Allreduce of one tensor with compression.
template <Element T>
Handle compressed_allreduce_async(std::span<const T> in, std::span<T> out, const std::string& name,
                                  Compression compression, ReduceOp op = ReduceOp::sum, Scaling scaling = {}) {
  const std::int64_t extent = detail::same_size(name, in.size(), out.size());
  return Handle(detail::submit(detail::compressed(name, op, scaling, compression),
                               detail::tensor_of(in, out, std::span(&extent, 1))));
}
template <Element T>
void compressed_allreduce(std::span<T> in_place, const std::string& name, Compression compression,
                          ReduceOp op = ReduceOp::sum, Scaling scaling = {}) {
  compressed_allreduce_async(std::span<const T>(in_place), in_place, name, compression, op, scaling).wait();
}

}  // namespace v0
}  // namespace runjob
