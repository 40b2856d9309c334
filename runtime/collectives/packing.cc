#include "runtime/collectives/packing.hpp"

#include <algorithm>
#include <cstdint>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/multiversion.hpp"
#include "runtime/collectives/reduce.hpp"

namespace runjob::runtime {
namespace {

/// A piece of float32 and one of float64 fit in the first-level cache together.
constexpr std::size_t kPieceElements = 512;

struct NarrowDoubles {
  RUNJOB_INLINE void run(float* out, const double* in, std::size_t count, double factor) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i] * factor);
  }
};

struct WidenFloats {
  RUNJOB_INLINE void run(double* out, const float* in, std::size_t count, double factor) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<double>(in[i]) * factor;
  }
};

/// The values as scaled float32. Returns `in` itself if no conversion is needed; otherwise the values are in `room`.
const float* scaled_floats(DType from, const void* in, std::size_t first, std::size_t count, double factor, float* room,
                           InstructionSet set) {
  if (from == DType::kFloat64) {
    version_of<NarrowDoubles, float*, const double*, std::size_t, double>(set)(
        room, static_cast<const double*>(in) + first, count, factor);
    return room;
  }
  const float* values = static_cast<const float*>(in) + first;
  if (factor == 1) return values;
  scale(DType::kFloat32, room, values, count, factor, 1, set);
  return room;
}

void narrow_all(DType to, void* out, DType from, const void* in, std::size_t count, double factor, InstructionSet set) {
  alignas(64) float room[kPieceElements];
  for (std::size_t done = 0; done < count; done += kPieceElements) {
    const std::size_t piece = std::min(kPieceElements, count - done);
    narrow(to, static_cast<std::uint16_t*>(out) + done, scaled_floats(from, in, done, piece, factor, room, set), piece,
           set);
  }
}

void widen_all(DType to, void* out, DType from, const void* in, std::size_t count, double factor, InstructionSet set) {
  alignas(64) float room[kPieceElements];
  for (std::size_t done = 0; done < count; done += kPieceElements) {
    const std::size_t piece = std::min(kPieceElements, count - done);
    float* wide = to == DType::kFloat32 ? static_cast<float*>(out) + done : room;
    widen(from, wide, static_cast<const std::uint16_t*>(in) + done, piece, set);
    if (to == DType::kFloat64) {
      version_of<WidenFloats, double*, const float*, std::size_t, double>(set)(static_cast<double*>(out) + done, wide,
                                                                               piece, factor);
    } else if (factor != 1) {
      scale(DType::kFloat32, wide, wide, piece, factor, 1, set);
    }
  }
}

}  // namespace

void convert(DType to, void* out, DType from, const void* in, std::size_t count, double factor, InstructionSet set) {
  if (to == from) {
    copy_bytes(out, in, count * size_of(to));
    return;
  }
  if (size_of(to) < size_of(from)) {
    narrow_all(to, out, from, in, count, factor, set);
  } else {
    widen_all(to, out, from, in, count, factor, set);
  }
}

}  // namespace runjob::runtime
