#pragma once

#include <cstddef>
#include <runjob/runjob.h>

#include "bindings/tensorflow/c_interface.hpp"

/// The types that collectives take, in TensorFlow's terms: one row for each.
namespace runjob::tensorflow {

struct DtypeRow {
  DataType type;       ///< TensorFlow's number
  runjob_dtype dtype;  ///< the number of the C interface
  const char* name;    ///< in the definition of an operation
  std::size_t size;    ///< bytes of one element
};

/// In the order in which the definitions of the operations list them.
inline constexpr DtypeRow kDtypes[] = {
    {DataType::kUint8, RUNJOB_UINT8, "uint8", 1},    {DataType::kInt8, RUNJOB_INT8, "int8", 1},
    {DataType::kUint16, RUNJOB_UINT16, "uint16", 2}, {DataType::kInt16, RUNJOB_INT16, "int16", 2},
    {DataType::kInt32, RUNJOB_INT32, "int32", 4},    {DataType::kInt64, RUNJOB_INT64, "int64", 8},
    {DataType::kHalf, RUNJOB_FLOAT16, "half", 2},    {DataType::kBfloat16, RUNJOB_BFLOAT16, "bfloat16", 2},
    {DataType::kFloat, RUNJOB_FLOAT32, "float", 4},  {DataType::kDouble, RUNJOB_FLOAT64, "double", 8},
    {DataType::kBool, RUNJOB_BOOL, "bool", 1},
};

/// The row of a type. TensorFlow passes no other type to an operation than its definition allows.
constexpr const DtypeRow& row_of(DataType type) {
  for (const DtypeRow& row : kDtypes) {
    if (row.type == type) return row;
  }
  return kDtypes[0];
}

namespace detail {

/// True when each number of the C interface from 0 on has one row.
consteval bool is_complete() {
  int number = 0;
  for ([[maybe_unused]] const DtypeRow& any : kDtypes) {
    int rows = 0;
    for (const DtypeRow& row : kDtypes) rows += row.dtype == number ? 1 : 0;
    if (rows != 1) return false;
    ++number;
  }
  return true;
}
static_assert(is_complete());

}  // namespace detail

}  // namespace runjob::tensorflow
