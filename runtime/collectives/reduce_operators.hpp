#pragma once

#include <cstdint>
#include <type_traits>

#include "base/error.hpp"
#include "runtime/collectives/multiversion.hpp"
#include "runtime/collectives/operation.hpp"

/// The reduction of two values. reduce.hpp defines the results for NaNs and for integers that overflow.
namespace runjob::runtime {

/// Small integers promote to int before arithmetic and int overflow is undefined: compute in the unsigned type.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

struct Sum {
  template <class T>
  RUNJOB_INLINE T of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct Product {
  template <class T>
  RUNJOB_INLINE T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {  // uint16 * uint16 would promote to a signed int and overflow
      using Wide = std::conditional_t<sizeof(T) < 8, std::uint32_t, std::uint64_t>;
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    } else {
      return a * b;
    }
  }
};

/// No short circuit, because that would keep the compiler from vectorizing.
struct Min {
  template <class T>
  RUNJOB_INLINE T of(T a, T b) {
    return static_cast<bool>(static_cast<int>(a < b) | static_cast<int>(a != a)) ? a : b;
  }
};

struct Max {
  template <class T>
  RUNJOB_INLINE T of(T a, T b) {
    return static_cast<bool>(static_cast<int>(a > b) | static_cast<int>(a != a)) ? a : b;
  }
};

/// Calls `use` with the operator of `op`, which is Sum() for kSum and kAverage, and returns its result.
template <class Use>
auto with_operator(ReduceOp op, Use use) {
  switch (op) {
    case ReduceOp::kAverage:
    case ReduceOp::kSum:
      return use(Sum());
    case ReduceOp::kMin:
      return use(Min());
    case ReduceOp::kMax:
      return use(Max());
    case ReduceOp::kProduct:
      return use(Product());
    case ReduceOp::kAdasum:
      break;
  }
  throw Error(Errc::kBug, "no such reduction");
}

}  // namespace runjob::runtime
