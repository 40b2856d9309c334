#include "runtime/collectives/hierarchical/exchanges/host_reduction.hpp"

#include <algorithm>

#include "runtime/collectives/copy_bytes.hpp"

namespace runjob::runtime {
namespace {

/// Two buffers of this size and the operands fit the first cache (32 KiB at least).
constexpr std::size_t kPieceBytes = 8192;

const void* at(const void* data, std::size_t bytes) {
  return static_cast<const std::byte*>(data) + bytes;
}

}  // namespace

HostReduction::HostReduction(const Call& call, int size)
    : dtype_(call.dtype),
      wide_(sum_dtype(call.dtype, call.op, call.postscale)),
      prescale_(call.prescale),
      postscale_(call.postscale),
      divisor_(call.op == ReduceOp::kAverage ? size : 1),
      reduce_(reduce_function(wide_, call.op)) {}

void HostReduction::add(void* out, const void* partial, std::span<const void* const> inputs, std::size_t count,
                        bool is_last) const {
  if (wide_ == dtype_ && prescale_ == 1 && inputs.size() + (partial != nullptr ? 1 : 0) == 2) {
    const bool has_partial = partial != nullptr;
    return add_two(out, has_partial ? partial : inputs[0], inputs[has_partial ? 0 : 1], count, is_last);
  }
  alignas(64) std::byte sum[kPieceBytes];
  const std::size_t element = size_of(dtype_), piece = kPieceBytes / size_of(wide_);
  for (std::size_t first = 0; first < count; first += piece) {
    const std::size_t length = std::min(piece, count - first), offset = first * element;
    if (partial != nullptr) load(sum, at(partial, offset), length);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      accumulate(sum, at(inputs[i], offset), partial == nullptr && i == 0, length);
    store(static_cast<std::byte*>(out) + offset, sum, length, is_last);
  }
}

/// Adds two operands in one pass over memory.
void HostReduction::add_two(void* out, const void* lower, const void* upper, std::size_t count, bool is_last) const {
  const std::size_t element = size_of(dtype_), piece = kPieceBytes / element;
  for (std::size_t first = 0; first < count; first += piece) {
    const std::size_t length = std::min(piece, count - first), offset = first * element;
    std::byte* sum = static_cast<std::byte*>(out) + offset;
    reduce_(sum, at(lower, offset), at(upper, offset), length);
    store(sum, sum, length, is_last);
  }
}

void HostReduction::begin(void* out, std::span<const void* const> inputs, std::size_t count) const {
  const std::size_t piece = kPieceBytes / size_of(wide_);
  for (std::size_t first = 0; first < count; first += piece) {
    const std::size_t length = std::min(piece, count - first);
    std::byte* sum = static_cast<std::byte*>(out) + first * size_of(wide_);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      accumulate(sum, at(inputs[i], first * size_of(dtype_)), i == 0, length);
  }
}

void HostReduction::finish(void* out, void* sum, std::size_t count) const {
  const std::size_t piece = kPieceBytes / size_of(wide_);
  for (std::size_t first = 0; first < count; first += piece) {
    store(static_cast<std::byte*>(out) + first * size_of(dtype_), static_cast<std::byte*>(sum) + first * size_of(wide_),
          std::min(piece, count - first), true);
  }
}

/// Widens the sums of another host, without scaling.
void HostReduction::load(std::byte* to, const void* input, std::size_t count) const {
  to_sum(wide_, to, dtype_, input, count);
}

void HostReduction::accumulate(std::byte* sum, const void* input, bool is_first, std::size_t count) const {
  alignas(64) std::byte next[kPieceBytes];
  const bool is_ready = wide_ == dtype_ && prescale_ == 1;
  if (is_ready && !is_first) return reduce_(sum, sum, input, count);
  std::byte* room = is_first ? sum : next;
  if (wide_ == dtype_ && prescale_ != 1) {
    scale(dtype_, room, input, count, prescale_, 1);
  } else if (!may_round() && prescale_ != 1) {  // limited to the range of the dtype
    alignas(64) std::byte scaled[kPieceBytes];
    scale(dtype_, scaled, input, count, prescale_, 1);
    load(room, scaled, count);
  } else {
    load(room, input, count);
    if (prescale_ != 1) scale(wide_, room, room, count, prescale_, 1);
  }
  if (!is_first) reduce_(sum, sum, next, count);
}

void HostReduction::store(void* out, std::byte* sum, std::size_t count, bool is_last) const {
  if (is_last && (postscale_ != 1 || divisor_ != 1)) scale(wide_, sum, sum, count, postscale_, divisor_);
  if (wide_ != dtype_ || out != sum) from_sum(dtype_, out, wide_, sum, count);
}

}  // namespace runjob::runtime
