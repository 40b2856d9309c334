#include "benchmarks/collectives/native/elements.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace runjob::benchmark {
namespace {

constexpr std::size_t kPeriod = 7;
constexpr int kLargest = 256;  // the integers up to it are exact in bfloat16

/// The bits of 0 ... kLargest in a dtype.
class Encoding {
 public:
  explicit Encoding(DType dtype) {
    for (int value = 0; value <= kLargest; ++value) bits_[value] = encode(dtype, static_cast<float>(value));
  }
  std::uint32_t operator[](std::size_t value) const { return bits_[std::min<std::size_t>(value, kLargest)]; }

 private:
  static std::uint32_t encode(DType dtype, float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (dtype == DType::float32) return bits;
    if (dtype == DType::bfloat16) return bits >> 16;
    if (value == 0) return 0;
    const int exponent = std::ilogb(value);
    const float fraction = std::ldexp(value, -exponent) - 1;
    return static_cast<std::uint32_t>((exponent + 15) << 10) + static_cast<std::uint32_t>(fraction * 1024);
  }

  std::uint32_t bits_[kLargest + 1] = {};
};

std::size_t given(std::size_t index, int rank) {
  return index % kPeriod + static_cast<std::size_t>(rank) + 1;
}

std::size_t summed(std::size_t index, int size) {
  const auto ranks = static_cast<std::size_t>(size);
  return ranks * (index % kPeriod) + ranks * (ranks + 1) / 2;
}

template <class Bits>
void fill_as(const Encoding& encoding, int rank, std::byte* buffer, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = static_cast<Bits>(encoding[given(i, rank)]);
    std::memcpy(buffer + i * sizeof(Bits), &bits, sizeof(Bits));
  }
}

template <class Bits, class Expected>
bool equals(const Encoding& encoding, const std::byte* result, std::size_t count, Expected expected) {
  for (std::size_t i = 0; i < count; ++i) {
    Bits bits = 0;
    std::memcpy(&bits, result + i * sizeof(Bits), sizeof(Bits));
    if (bits != static_cast<Bits>(encoding[expected(i)])) return false;
  }
  return true;
}

template <class Bits>
bool is_right_as(Operation operation, const Encoding& encoding, const std::byte* result, std::size_t inputs, int rank,
                 int size, int root) {
  const std::size_t count = output_count(operation, inputs, size);
  const std::size_t block = inputs / static_cast<std::size_t>(size);
  const std::size_t first = static_cast<std::size_t>(rank) * block;  // start of this rank's part
  switch (operation) {
    case Operation::allreduce:
      return equals<Bits>(encoding, result, count, [&](std::size_t i) { return summed(i, size); });
    case Operation::allgather:
      return equals<Bits>(encoding, result, count,
                          [&](std::size_t i) { return given(i % inputs, static_cast<int>(i / inputs)); });
    case Operation::broadcast:
      return equals<Bits>(encoding, result, count, [&](std::size_t i) { return given(i, root); });
    case Operation::reducescatter:
      return equals<Bits>(encoding, result, count, [&](std::size_t i) { return summed(first + i, size); });
    case Operation::alltoall:
      return equals<Bits>(encoding, result, count,
                          [&](std::size_t i) { return given(first + i % block, static_cast<int>(i / block)); });
    case Operation::barrier:
      return true;
  }
  return false;
}

}  // namespace

std::size_t bytes_of(DType dtype) {
  return dtype == DType::float32 ? 4 : 2;
}

std::size_t input_count(Operation operation, DType dtype, std::size_t bytes, int size) {
  if (operation == Operation::barrier) return 0;
  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t count = std::max<std::size_t>(1, bytes / bytes_of(dtype));
  const bool divides = operation == Operation::reducescatter || operation == Operation::alltoall;
  return divides ? std::max(ranks, count / ranks * ranks) : count;
}

std::size_t output_count(Operation operation, std::size_t inputs, int size) {
  const auto ranks = static_cast<std::size_t>(size);
  if (operation == Operation::allgather) return inputs * ranks;
  return operation == Operation::reducescatter ? inputs / ranks : inputs;
}

void fill(DType dtype, int rank, std::byte* buffer, std::size_t count) {
  const Encoding encoding(dtype);
  if (dtype == DType::float32) return fill_as<std::uint32_t>(encoding, rank, buffer, count);
  fill_as<std::uint16_t>(encoding, rank, buffer, count);
}

bool is_right(Operation operation, DType dtype, const std::byte* result, std::size_t inputs, int rank, int size,
              int root) {
  const Encoding encoding(dtype);
  if (dtype == DType::float32) {
    return is_right_as<std::uint32_t>(operation, encoding, result, inputs, rank, size, root);
  }
  return is_right_as<std::uint16_t>(operation, encoding, result, inputs, rank, size, root);
}

}  // namespace runjob::benchmark
