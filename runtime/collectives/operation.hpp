#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What a collective is, as a value: the same on the caller's side, on the wire and in a backend.
namespace runjob::runtime {

/// Numbered as Horovod numbers its requests, so that traces can be compared.
enum class Kind : std::uint8_t {
  kAllreduce = 0,
  kAllgather = 1,
  kBroadcast = 2,
  kJoin = 3,  ///< from then on, zeros of this rank take part in the others' allreduces, until all have joined
  kAlltoall = 5,
  kBarrier = 6,
  kReducescatter = 7
};

/// Numbered as in runjob.h.
enum class DType : std::uint8_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBool = 9,
  kBfloat16 = 10
};
inline constexpr int kDTypeCount = 11;

/// Numbered as in runjob.h.
enum class ReduceOp : std::uint8_t { kAverage = 0, kSum = 1, kMin = 3, kMax = 4, kProduct = 5 };

using Shape = std::vector<std::int64_t>;
using ShapeView = std::span<const std::int64_t>;

/// One tensor of a grouped operation.
struct GroupTensor {
  DType dtype = DType::kUint8;
  Shape shape = {};

  bool operator==(const GroupTensor&) const = default;
};

/// Everything that the ranks must agree on, apart from an allgather's or alltoall's first extent and the latter's splits.
/// `Extents`: Shape, or ShapeView for what is lent.
template <class Extents>
struct BasicSignature {
  Kind kind = Kind::kBarrier;
  DType dtype = DType::kUint8;
  ReduceOp op = ReduceOp::kSum;  ///< of the reductions, as the scales
  std::int32_t root = 0;         ///< broadcast only
  std::int32_t process_set = 0;
  double prescale = 1, postscale = 1;
  Extents shape = {};
  Extents splits = {};  ///< alltoall only: how many rows of the first dimension go to each rank
  /// allreduce only: float16 or bfloat16, as which values of float32 and float64 travel; other dtypes travel as they are.
  std::optional<DType> wire = {};
  std::vector<GroupTensor> group = {};  ///< of a grouped operation, in place of `dtype` and `shape`: its tensors

  bool operator==(const BasicSignature&) const = default;
};
using Signature = BasicSignature<Shape>;
/// As a caller describes an operation on one tensor: `group` is empty, and an alltoall without splits divides evenly.
using SignatureView = BasicSignature<ShapeView>;

/// Whether `view` describes it.
bool describes(const SignatureView& view, const Signature& signature);
/// The same with the other kind of extents, of one tensor; a view is lent from `from`.
template <class To, class From>
BasicSignature<To> with_extents(const BasicSignature<From>& from) {
  return {.kind = from.kind,
          .dtype = from.dtype,
          .op = from.op,
          .root = from.root,
          .process_set = from.process_set,
          .prescale = from.prescale,
          .postscale = from.postscale,
          .shape = To(from.shape.begin(), from.shape.end()),
          .splits = To(from.splits.begin(), from.splits.end()),
          .wire = from.wire,
          .group = {}};
}

std::string_view to_string(Kind kind);    ///< "allreduce"
std::string_view to_string(DType dtype);  ///< "float32"
std::string_view to_string(ReduceOp op);  ///< "average"
std::string to_string(ShapeView shape);   ///< "[2, 3]"

/// How messages name an operation: "allreduce 'x'", "allreduce 'x' of process set 2".
std::string operation_text(std::string_view name, Kind kind, int process_set);
std::string operation_text(std::string_view name, const Signature& signature);

/// Whether each rank may have another first extent.
bool has_own_first_extent(Kind kind);

bool is_kind(int number);
bool is_dtype(int number);
bool is_reduce_op(int number);

/// Units  bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  constexpr std::size_t kSizes[kDTypeCount] = {1, 1, 2, 2, 4, 8, 2, 4, 8, 1, 2};
  return kSizes[static_cast<int>(dtype)];
}

/// float16 or bfloat16.
constexpr bool is_half(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16;
}

/// The product of the extents; 1 for a scalar.
/// Errors  Error(kInvalidArgument) for a negative extent or more than 2^63-1 elements.
std::int64_t element_count(ShapeView shape);
/// Of one index of the first dimension, which there must be. Errors  as element_count().
std::int64_t row_elements(ShapeView shape);

/// How many rows of a reducescatter's first dimension, `rows`, rank `rank` of `size` gets: the first ones get one more when
/// they cannot be divided evenly.
std::int64_t scattered_rows(std::int64_t rows, int rank, int size);

/// Splits of an alltoall that sends as many rows to each rank. Errors  Error(kInvalidArgument), naming `name`, when `shape`
/// cannot be split so.
Shape even_splits(std::string_view name, const Shape& shape, int size);

/// How many tensors it is about: 1 unless it is grouped.
std::size_t tensor_count(const Signature& signature);
/// Of one of its tensors alone.
Signature signature_of(const Signature& signature, std::size_t tensor);
/// Of all its tensors, when their values travel as `wire` where they can; nullopt: as they are.
std::size_t input_bytes(const Signature& signature, std::optional<DType> wire);

/// How messages name one of `count` tensors, counted from 0: "g_2of3".
std::string tensor_name(std::string_view group, std::size_t tensor, std::size_t count);

/// What values of `dtype` travel as when `wire` is asked for.
DType wire_dtype(DType dtype, std::optional<DType> wire);

/// Refuses what can never work among `size` ranks, whatever the other ranks say. The root is counted among them.
/// Errors  Error(kInvalidArgument), naming `name`.
void check_operation(std::string_view name, const Signature& signature, int size);

}  // namespace runjob::runtime
