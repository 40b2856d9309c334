#include "runtime/collectives/rank_order_reduction.hpp"

#include <algorithm>
#include <cstdint>

#include "runtime/collectives/copy_bytes.hpp"

namespace runjob::runtime {
namespace {

/// Two buffers of this size and the output's part fit in the first-level cache (32 KiB at least).
constexpr std::size_t kPieceBytes = 8192;

}  // namespace

RankOrderReduction::RankOrderReduction(DType dtype, ReduceOp op, double prescale, double postscale, int size)
    : dtype_(dtype),
      wide_(sum_dtype(dtype, op, postscale)),
      op_(op),
      size_(size),
      prescale_(prescale),
      postscale_(postscale),
      divisor_(op == ReduceOp::kAverage ? size : 1),
      is_plain_(prescale_ == 1 && postscale_ == 1 && divisor_ == 1),
      reduce_(reduce_function(dtype, op)),
      reduce_wide_(reduce_function(wide_, op)),
      reduce_halves_(is_half(dtype) && prescale_ == 1 && is_power_of_two(postscale_ / divisor_)
                         ? half_reduction(dtype, op)
                         : nullptr) {}

void RankOrderReduction::run(void* out, std::span<const void* const> inputs, std::size_t count) const {
  if (is_plain_ && inputs.size() == 2) return reduce_(out, inputs[0], inputs[1], count);
  if (reduce_halves_ != nullptr) {
    return reduce_halves_(out, inputs.data(), inputs.size(), count, static_cast<float>(postscale_ / divisor_));
  }
  const bool is_wide = wide_ != dtype_, needs_room = writes_early_into(out, inputs);
  const std::size_t element = size_of(dtype_), piece = kPieceBytes / size_of(wide_);
  alignas(64) std::byte room[kPieceBytes];
  for (std::size_t first = 0; first < count; first += piece) {
    const std::size_t length = std::min(piece, count - first);
    std::byte* result = static_cast<std::byte*>(out) + first * element;
    if (is_wide && is_half(dtype_)) {
      run_piece_of_halves(out, inputs, first, length);
    } else if (is_wide) {
      run_piece_of_integers(out, inputs, first, length);
    } else if (needs_room) {
      run_piece(room, inputs, first, length);
      copy_bytes(result, room, length * element);
    } else {
      run_piece(result, inputs, first, length);
    }
  }
}

/// True if run_piece() would write over an input before it has read it.
bool RankOrderReduction::writes_early_into(const void* out, std::span<const void* const> inputs) const {
  const std::size_t first = prescale_ == 1 ? 2 : 1;  // until then, only inputs that were already read are overwritten
  return first < inputs.size() &&
         std::find(inputs.begin() + static_cast<std::ptrdiff_t>(first), inputs.end(), out) != inputs.end();
}

void RankOrderReduction::run_piece(std::byte* result, std::span<const void* const> inputs, std::size_t first,
                                   std::size_t count) const {
  alignas(64) std::byte scaled[kPieceBytes];
  const std::size_t offset = first * size_of(dtype_);
  const auto input = [&](std::size_t rank, void* room) -> const void* {
    const std::byte* source = static_cast<const std::byte*>(inputs[rank]) + offset;
    if (prescale_ == 1) return source;
    scale(dtype_, room, source, count, prescale_, 1);
    return room;
  };
  const void* sum = input(0, result);
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    reduce_(result, sum, input(rank, scaled), count);
    sum = result;
  }
  if (sum != result) copy_bytes(result, sum, count * size_of(dtype_));  // one rank only
  if (postscale_ != 1 || divisor_ != 1) scale(dtype_, result, result, count, postscale_, divisor_);
}

void RankOrderReduction::run_piece_of_halves(void* out, std::span<const void* const> inputs, std::size_t first,
                                             std::size_t count) const {
  alignas(64) float sum[kPieceBytes / sizeof(float)], next[kPieceBytes / sizeof(float)];
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    float* wide = rank == 0 ? sum : next;
    widen(dtype_, wide, static_cast<const std::uint16_t*>(inputs[rank]) + first, count);
    if (prescale_ != 1) scale(DType::kFloat32, wide, wide, count, prescale_, 1);
    if (rank > 0) reduce_wide_(sum, sum, next, count);
  }
  if (postscale_ != 1 || divisor_ != 1) scale(DType::kFloat32, sum, sum, count, postscale_, divisor_);
  narrow(dtype_, static_cast<std::uint16_t*>(out) + first, sum, count);
}

void RankOrderReduction::run_piece_of_integers(void* out, std::span<const void* const> inputs, std::size_t first,
                                               std::size_t count) const {
  constexpr std::size_t kElements = kPieceBytes / sizeof(std::int32_t);
  alignas(64) std::int32_t sum[kElements], next[kElements];
  alignas(64) std::byte scaled[kElements * sizeof(std::int16_t)];
  const std::size_t offset = first * size_of(dtype_);
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    const void* input = static_cast<const std::byte*>(inputs[rank]) + offset;
    if (prescale_ != 1) {
      scale(dtype_, scaled, input, count, prescale_, 1);
      input = scaled;
    }
    widen(dtype_, rank == 0 ? sum : next, input, count);
    if (rank > 0) reduce_wide_(sum, sum, next, count);
  }
  scale(wide_, sum, sum, count, postscale_, divisor_);
  narrow(dtype_, static_cast<std::byte*>(out) + offset, sum, count);
}

}  // namespace runjob::runtime
