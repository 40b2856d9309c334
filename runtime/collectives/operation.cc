#include "runtime/collectives/operation.hpp"

#include <algorithm>
#include <charconv>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

[[noreturn]] void refuse(std::string_view name, const Signature& signature, const std::string& why) {
  throw Error(Errc::kInvalidArgument, fmt::format("{}: {}", operation_text(name, signature), why));
}

void check_adasum(std::string_view name, const Signature& signature) {
  if (signature.op != ReduceOp::kAdasum) return;
  if (signature.kind == Kind::kReducescatter) refuse(name, signature, "Adasum is a reduction of allreduces alone");
  const ElementKind kind = row_of(signature.dtype).kind;
  if (kind == ElementKind::kFloat || kind == ElementKind::kHalf) return;
  refuse(name, signature,
         fmt::format("Adasum of {} values is not defined; convert them to float32", to_string(signature.dtype)));
}

void check_reduction(std::string_view name, const Signature& signature) {
  check_adasum(name, signature);
  if (row_of(signature.dtype).kind != ElementKind::kBool) return;
  if (signature.op == ReduceOp::kAverage) refuse(name, signature, "bool values cannot be averaged");
  if (signature.prescale != 1 || signature.postscale != 1) {
    refuse(name, signature, "bool values cannot be scaled");
  }
}

void check_wire(std::string_view name, const Signature& signature) {
  if (!signature.wire) return;
  if (signature.kind != Kind::kAllreduce) refuse(name, signature, "only an allreduce can be compressed");
  if (!is_half(*signature.wire))
    refuse(name, signature, fmt::format("values cannot be compressed to {}", to_string(*signature.wire)));
}

void check_group(std::string_view name, const Signature& signature, int size) {
  const bool can_be = signature.kind == Kind::kAllreduce || signature.kind == Kind::kAllgather ||
                      signature.kind == Kind::kBroadcast || signature.kind == Kind::kReducescatter;
  if (!can_be) refuse(name, signature, "it cannot be grouped");
  const std::size_t count = tensor_count(signature);
  for (std::size_t tensor = 0; tensor < count; ++tensor)
    check_operation(tensor_name(name, tensor, count), signature_of(signature, tensor), size);
}

void check_splits(std::string_view name, const Signature& signature, int size) {
  const std::int64_t rows = signature.shape.front();
  std::int64_t sum = 0;
  bool valid = signature.splits.size() == static_cast<std::size_t>(size);
  for (const std::int64_t split : signature.splits)
    valid = valid && split >= 0 && !__builtin_add_overflow(sum, split, &sum);
  if (valid && sum == rows) return;
  refuse(name, signature,
         fmt::format("the splits {} do not divide the {} rows of the tensor among {} ranks",
                     to_string(signature.splits), rows, size));
}

/// The product of the extents from dimension `first` on.
std::int64_t product(ShapeView shape, std::size_t first) {
  std::int64_t count = 1;
  bool empty = false, overflow = false;
  for (std::size_t i = first; i < shape.size(); ++i) {
    const std::int64_t extent = shape[i];
    if (extent < 0) {
      throw Error(Errc::kInvalidArgument, fmt::format("shape {} has a negative extent", to_string(shape)));
    }
    empty = empty || extent == 0;
    overflow = __builtin_mul_overflow(count, extent, &count) || overflow;
  }
  if (empty) return 0;
  if (overflow) {
    throw Error(Errc::kInvalidArgument, fmt::format("shape {} has too many elements", to_string(shape)));
  }
  return count;
}

/// True if the splits are those of even_splits().
bool are_even(const Shape& splits) {
  return std::adjacent_find(splits.begin(), splits.end(), std::not_equal_to<>()) == splits.end();
}

}  // namespace

bool describes(const SignatureView& view, const Signature& signature) {
  const bool has_splits = view.kind != Kind::kAlltoall || !view.splits.empty();
  return view.kind == signature.kind && view.dtype == signature.dtype && view.op == signature.op &&
         view.root == signature.root && view.process_set == signature.process_set &&
         view.prescale == signature.prescale && view.postscale == signature.postscale && view.wire == signature.wire &&
         view.memory == signature.memory && signature.group.empty() &&
         std::ranges::equal(view.shape, signature.shape) &&
         (has_splits ? std::ranges::equal(view.splits, signature.splits) : are_even(signature.splits));
}

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kAllreduce:
      return "allreduce";
    case Kind::kAllgather:
      return "allgather";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kAlltoall:
      return "alltoall";
    case Kind::kBarrier:
      return "barrier";
    case Kind::kJoin:
      return "join";
    case Kind::kReducescatter:
      return "reducescatter";
  }
  return "unknown";
}

std::string_view to_string(ReduceOp op) {
  switch (op) {
    case ReduceOp::kAverage:
      return "average";
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAdasum:
      return "Adasum";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProduct:
      return "product";
  }
  return "unknown";
}

std::string to_string(ShapeView shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string unnamed_operation(int process_set, std::uint64_t number) {
  return fmt::format("{}{}:{}", kUnnamed, process_set, number);
}

int process_set_of(std::string_view unnamed) {
  unnamed.remove_prefix(kUnnamed.size());
  int number = 0;
  std::from_chars(unnamed.data(), unnamed.data() + unnamed.size(), number);
  return number;
}

std::string name_text(std::string_view name) {
  if (!is_unnamed(name)) return fmt::format("'{}'", name);
  const std::size_t set_end = name.find(':');
  if (set_end == std::string_view::npos) return "without a name";
  return fmt::format("number {}", name.substr(set_end + 1));
}

std::string operation_text(std::string_view name, Kind kind, int process_set) {
  if (process_set == 0) return fmt::format("{} {}", to_string(kind), name_text(name));
  const std::string suffix = name_in_set("", process_set);
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return fmt::format("{} {} of process set {}", to_string(kind), name_text(name), process_set);
}

std::string name_in_set(std::string_view name, int process_set) {
  return fmt::format("{} (process set {})", name, process_set);
}

std::string operation_text(std::string_view name, const Signature& signature) {
  return operation_text(name, signature.kind, signature.process_set);
}

bool has_own_first_extent(Kind kind) {
  return kind == Kind::kAllgather || kind == Kind::kAlltoall;
}

bool is_kind(int number) {
  return (number >= 0 && number <= 3) || (number >= 5 && number <= 7);
}

bool is_reduce_op(int number) {
  return number >= 0 && number <= 5;
}

std::int64_t element_count(ShapeView shape) {
  return product(shape, 0);
}

std::int64_t row_elements(ShapeView shape) {
  return product(shape, 1);
}

std::int64_t scattered_rows(std::int64_t rows, int rank, int size) {
  return rows / size + (rank < rows % size ? 1 : 0);
}

Shape even_splits(std::string_view name, const Shape& shape, int size) {
  const Signature signature{.kind = Kind::kAlltoall, .shape = shape};
  if (shape.empty()) refuse(name, signature, "a scalar has no first dimension to split");
  if (shape.front() % size != 0)
    refuse(name, signature,
           fmt::format("{} rows cannot be split evenly among {} ranks; give splits", shape.front(), size));
  return Shape(static_cast<std::size_t>(size), shape.front() / size);
}

std::size_t tensor_count(const Signature& signature) {
  return signature.group.empty() ? 1 : signature.group.size();
}

Signature signature_of(const Signature& signature, std::size_t tensor) {
  Signature result = signature;
  if (signature.group.empty()) return result;
  result.dtype = signature.group[tensor].dtype;
  result.shape = signature.group[tensor].shape;
  result.group.clear();
  return result;
}

std::size_t input_bytes(const Signature& signature, std::optional<DType> wire) {
  std::size_t bytes = 0;
  for (std::size_t tensor = 0; tensor < tensor_count(signature); ++tensor) {
    const Signature alone = signature_of(signature, tensor);
    bytes += static_cast<std::size_t>(element_count(alone.shape)) * size_of(wire_dtype(alone.dtype, wire));
  }
  return bytes;
}

DType wire_dtype(DType dtype, std::optional<DType> wire) {
  return row_of(dtype).kind == ElementKind::kFloat ? wire.value_or(dtype) : dtype;
}

std::string tensor_name(std::string_view group, std::size_t tensor, std::size_t count) {
  return fmt::format("{}_{}of{}", group, tensor + 1, count);
}

void check_operation(std::string_view name, const Signature& signature, int size) {
  if (!signature.group.empty()) return check_group(name, signature, size);
  constexpr std::int64_t kMostBytes = INT64_MAX;
  const std::int64_t count = element_count(signature.shape);
  if (count > kMostBytes / static_cast<std::int64_t>(size_of(signature.dtype))) {
    refuse(name, signature, fmt::format("shape {} has too many elements", to_string(signature.shape)));
  }
  check_wire(name, signature);
  switch (signature.kind) {
    case Kind::kAllreduce:
      check_reduction(name, signature);
      return;
    case Kind::kAllgather:
      if (signature.shape.empty()) refuse(name, signature, "a scalar has no first dimension to gather along");
      return;
    case Kind::kBroadcast:
      if (signature.root < 0 || signature.root >= size) {
        refuse(name, signature, fmt::format("root rank {} is not in a job of size {}", signature.root, size));
      }
      return;
    case Kind::kAlltoall:
      if (signature.shape.empty()) refuse(name, signature, "a scalar has no first dimension to split");
      check_splits(name, signature, size);
      return;
    case Kind::kReducescatter:
      if (signature.shape.empty()) refuse(name, signature, "a scalar has no first dimension to scatter");
      check_reduction(name, signature);
      return;
    case Kind::kBarrier:
    case Kind::kJoin:
      return;
  }
}

}  // namespace runjob::runtime
