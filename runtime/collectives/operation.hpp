#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "runtime/collectives/dtype.hpp"
#include "runtime/collectives/memory.hpp"

/// The description of a collective as a value. It is the same on the caller's side, on the wire and in a backend.
namespace runjob::runtime {

/// The numbers are those of Horovod's requests, so that traces can be compared.
enum class Kind : std::uint8_t {
  kAllreduce = 0,
  kAllgather = 1,
  kBroadcast = 2,
  kJoin = 3,  ///< afterwards this rank contributes zeros to the others' allreduces until all have joined
  kAlltoall = 5,
  kBarrier = 6,
  kReducescatter = 7
};
/// For arrays by kind: one more than the last number.
inline constexpr std::size_t kKindNumbers = static_cast<std::size_t>(Kind::kReducescatter) + 1;

/// The numbers are those of runjob.h. No backend gets kAdasum: see runtime/operations/adasum.hpp.
enum class ReduceOp : std::uint8_t { kAverage = 0, kSum = 1, kAdasum = 2, kMin = 3, kMax = 4, kProduct = 5 };

using Shape = std::vector<std::int64_t>;
using ShapeView = std::span<const std::int64_t>;

/// One tensor of a grouped operation.
struct GroupTensor {
  DType dtype = DType::kUint8;
  Shape shape = {};

  bool operator==(const GroupTensor&) const = default;
};

/// Everything that the ranks must agree on, except an allgather's or alltoall's first extent and the latter's splits.
/// `Extents` is Shape, or ShapeView for lent extents.
template <class Extents>
struct BasicSignature {
  Kind kind = Kind::kBarrier;
  DType dtype = DType::kUint8;
  ReduceOp op = ReduceOp::kSum;  ///< for reductions, like the scales
  std::int32_t root = 0;         ///< broadcast only
  std::int32_t process_set = 0;
  double prescale = 1, postscale = 1;
  Extents shape = {};
  Extents splits = {};  ///< alltoall only: number of rows of the first dimension for each rank
  /// allreduce only: float16 or bfloat16, the type in which values of float32 and float64 travel. Other dtypes travel
  /// unchanged.
  std::optional<DType> wire = {};
  MemoryKind memory = MemoryKind::kHost;  ///< the kind of memory that the tensors lie in
  std::vector<GroupTensor> group = {};    ///< grouped operations: their tensors, instead of `dtype` and `shape`
  Status obstacle = {};  ///< the reason why the rank that gives this cannot run it; then no rank does. OK for none

  bool operator==(const BasicSignature&) const = default;
};
using Signature = BasicSignature<Shape>;
/// A caller's description of an operation: an alltoall without splits divides evenly.
using SignatureView = BasicSignature<ShapeView>;

/// True if `view` describes the same operation as `signature`.
bool describes(const SignatureView& view, const Signature& signature);
/// The same signature with the other kind of extents, without its group. A view is lent from `from`.
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
          .memory = from.memory,
          .group = {}};
}

std::string_view to_string(Kind kind);    ///< "allreduce"
std::string_view to_string(ReduceOp op);  ///< "average"
std::string to_string(ShapeView shape);   ///< "[2, 3]"

/// The name of an operation that its caller has not named, before it has a number. Such names begin with a byte that no
/// name of a caller has.
inline constexpr std::string_view kUnnamed{"\0", 1};
inline bool is_unnamed(std::string_view name) {
  return name.starts_with(kUnnamed);
}
/// The name of the unnamed operation `number`, from 1 on, of a process set.
std::string unnamed_operation(int process_set, std::uint64_t number);
/// The process set of an unnamed operation that has a number; 0 before that.
int process_set_of(std::string_view unnamed);
/// A name alone in messages: "'x'", "number 5", "without a name" before it has a number.
std::string name_text(std::string_view name);

/// The name of an operation in messages: "allreduce 'x'", "allreduce 'x' of process set 2", "allreduce number 5".
std::string operation_text(std::string_view name, Kind kind, int process_set);
std::string operation_text(std::string_view name, const Signature& signature);
/// The name, among the operations of an engine that several process sets share, of the operation `name` of one of them:
/// "x (process set 2)". operation_text() takes both forms of a name.
std::string name_in_set(std::string_view name, int process_set);

/// True if the first extent may differ between ranks.
bool has_own_first_extent(Kind kind);

bool is_kind(int number);
bool is_reduce_op(int number);

/// The product of the extents; 1 for a scalar.
/// Errors  Error(kInvalidArgument) for a negative extent or more than 2^63-1 elements.
std::int64_t element_count(ShapeView shape);
/// The number of elements of one index of the first dimension, which must exist.
/// Errors  as element_count().
std::int64_t row_elements(ShapeView shape);

/// The number of rows that rank `rank` of `size` gets in a reducescatter whose first dimension has `rows` rows. The
/// first ranks get one more when the rows cannot be divided evenly.
std::int64_t scattered_rows(std::int64_t rows, int rank, int size);

/// The splits of an alltoall that sends the same number of rows to each rank.
/// Errors  Error(kInvalidArgument), naming `name`, when `shape` cannot be split so.
Shape even_splits(std::string_view name, const Shape& shape, int size);

/// The number of the operation's tensors: 1 unless it is grouped.
std::size_t tensor_count(const Signature& signature);
/// The signature of one of its tensors alone.
Signature signature_of(const Signature& signature, std::size_t tensor);
/// The bytes of all its input tensors, when their values travel as `wire` where possible; nullopt: unchanged.
std::size_t input_bytes(const Signature& signature, std::optional<DType> wire);

/// The name in messages of one of `count` tensors, with indexes from 0: "g_2of3".
std::string tensor_name(std::string_view group, std::size_t tensor, std::size_t count);

/// The type in which values of `dtype` travel when `wire` is requested.
DType wire_dtype(DType dtype, std::optional<DType> wire);

/// Throws for an operation that can never succeed among `size` ranks, whatever the other ranks submit. The root is an
/// index among these ranks.
/// Errors  Error(kInvalidArgument), naming `name`.
void check_operation(std::string_view name, const Signature& signature, int size);

}  // namespace runjob::runtime
