#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <runjob/runjob.h>
#include <string_view>

/// The types of a tensor's elements. This is their table; docs/developers/adding-a-dtype.md lists the other places.
namespace runjob::runtime {

/// The numbers are those of the C interface, which are also the numbers in messages between ranks.
enum class DType : std::uint8_t {
  kUint8 = RUNJOB_UINT8,
  kInt8 = RUNJOB_INT8,
  kUint16 = RUNJOB_UINT16,
  kInt16 = RUNJOB_INT16,
  kInt32 = RUNJOB_INT32,
  kInt64 = RUNJOB_INT64,
  kFloat16 = RUNJOB_FLOAT16,
  kFloat32 = RUNJOB_FLOAT32,
  kFloat64 = RUNJOB_FLOAT64,
  kBool = RUNJOB_BOOL,
  kBfloat16 = RUNJOB_BFLOAT16
};

enum class ElementKind : std::uint8_t {
  kInteger,
  kFloat,
  kHalf,  ///< a float of two bytes: reductions compute in float32
  kBool,
};

struct DTypeRow {
  std::string_view name = {};  ///< in messages; NumPy and PyTorch use the same name
  std::uint8_t size = 0;       ///< bytes of one element
  ElementKind kind = ElementKind::kInteger;
};

namespace detail {

/// The table. The compiler refuses a dtype without a row, because the switch has no default.
constexpr DTypeRow row_of(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return {"uint8", 1, ElementKind::kInteger};
    case DType::kInt8:
      return {"int8", 1, ElementKind::kInteger};
    case DType::kUint16:
      return {"uint16", 2, ElementKind::kInteger};
    case DType::kInt16:
      return {"int16", 2, ElementKind::kInteger};
    case DType::kInt32:
      return {"int32", 4, ElementKind::kInteger};
    case DType::kInt64:
      return {"int64", 8, ElementKind::kInteger};
    case DType::kFloat16:
      return {"float16", 2, ElementKind::kHalf};
    case DType::kFloat32:
      return {"float32", 4, ElementKind::kFloat};
    case DType::kFloat64:
      return {"float64", 8, ElementKind::kFloat};
    case DType::kBool:
      return {"bool", 1, ElementKind::kBool};
    case DType::kBfloat16:
      return {"bfloat16", 2, ElementKind::kHalf};
  }
  return {};  // no dtype has this number
}

constexpr int count_dtypes() {
  constexpr int kNumbers = 256;  // those that a DType can hold
  int count = 0;
  for (int number = 0; number < kNumbers; ++number) count += row_of(static_cast<DType>(number)).size == 0 ? 0 : 1;
  return count;
}

}  // namespace detail

inline constexpr int kDTypeCount = detail::count_dtypes();
inline constexpr DType kLastDType = static_cast<DType>(kDTypeCount - 1);

namespace detail {

constexpr std::array<DTypeRow, kDTypeCount> all_rows() {
  std::array<DTypeRow, kDTypeCount> rows;
  for (std::size_t number = 0; number < rows.size(); ++number) rows[number] = row_of(static_cast<DType>(number));
  return rows;
}

}  // namespace detail

/// The rows, each at its dtype's number.
inline constexpr std::array<DTypeRow, kDTypeCount> kDTypeRows = detail::all_rows();

/// True when the dtypes' numbers have no gap, and each row has a name.
consteval bool is_complete() {
  for (const DTypeRow& row : kDTypeRows) {
    if (row.size == 0 || row.name.empty()) return false;
  }
  return true;
}
static_assert(is_complete());

constexpr bool is_dtype(int number) {
  return number >= 0 && number < kDTypeCount;
}

constexpr const DTypeRow& row_of(DType dtype) {
  return kDTypeRows[static_cast<std::size_t>(dtype)];
}

/// Units  bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  return row_of(dtype).size;
}

/// "float32"
constexpr std::string_view to_string(DType dtype) {
  return row_of(dtype).name;
}

/// A float of any size.
constexpr bool is_float(DType dtype) {
  switch (row_of(dtype).kind) {
    case ElementKind::kInteger:
    case ElementKind::kBool:
      return false;
    case ElementKind::kFloat:
    case ElementKind::kHalf:
      return true;
  }
  return false;
}

/// The dtype in which the elements are added. `is_scaled`: their sum is scaled or averaged. Such a sum may be too large
/// for 8 or 16 bits, though its result is not; int32 has room for the sums of 32,768 ranks.
constexpr DType sum_dtype(DType dtype, bool is_scaled) {
  switch (row_of(dtype).kind) {
    case ElementKind::kInteger:
      return is_scaled && row_of(dtype).size < sizeof(std::int32_t) ? DType::kInt32 : dtype;
    case ElementKind::kBool:
    case ElementKind::kFloat:
      return dtype;
    case ElementKind::kHalf:
      return DType::kFloat32;
  }
  return dtype;
}

/// float16 or bfloat16.
constexpr bool is_half(DType dtype) {
  return row_of(dtype).kind == ElementKind::kHalf;
}

}  // namespace runjob::runtime
