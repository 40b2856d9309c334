#include "benchmarks/collectives/native/elements.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/catch.hpp"

namespace {

using namespace runjob::benchmark;

template <class Bits>
std::vector<Bits> filled(DType dtype, int rank, std::size_t count) {
  std::vector<Bits> values(count);
  fill(dtype, rank, reinterpret_cast<std::byte*>(values.data()), count);
  return values;
}

template <class Value>
const std::byte* bytes(const std::vector<Value>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

std::vector<float> sum_of_two_ranks(std::size_t count) {
  std::vector<float> sum = filled<float>(DType::float32, 0, count);
  const std::vector<float> other = filled<float>(DType::float32, 1, count);
  for (std::size_t i = 0; i < count; ++i) sum[i] += other[i];
  return sum;
}

}  // namespace

TEST_CASE("each rank gives other numbers, the same ones in every dtype", "[benchmarks][unit]") {
  CHECK(filled<float>(DType::float32, 0, 3) == std::vector<float>{1, 2, 3});
  CHECK(filled<float>(DType::float32, 2, 3) == std::vector<float>{3, 4, 5});
  CHECK(filled<std::uint16_t>(DType::float16, 0, 3) == std::vector<std::uint16_t>{0x3C00, 0x4000, 0x4200});
  CHECK(filled<std::uint16_t>(DType::bfloat16, 0, 3) == std::vector<std::uint16_t>{0x3F80, 0x4000, 0x4040});
}

TEST_CASE("sizes are full elements, and divisible where the operation divides", "[benchmarks][unit]") {
  CHECK(input_count(Operation::allreduce, DType::float32, 4, 8) == 1);
  CHECK(input_count(Operation::allreduce, DType::float16, 4, 8) == 2);
  CHECK(input_count(Operation::allreduce, DType::float32, 1, 8) == 1);
  CHECK(input_count(Operation::alltoall, DType::float32, 4, 8) == 8);
  CHECK(input_count(Operation::reducescatter, DType::float32, 40, 8) == 8);
  CHECK(input_count(Operation::barrier, DType::float32, 4, 8) == 0);
  CHECK(output_count(Operation::allgather, 3, 8) == 24);
  CHECK(output_count(Operation::reducescatter, 16, 8) == 2);
}

TEST_CASE("an allreduce is right when each element is the sum", "[benchmarks][unit]") {
  std::vector<float> result = sum_of_two_ranks(9);
  CHECK(is_right(Operation::allreduce, DType::float32, bytes(result), 9, 0, 2, 0));
  result.back() += 1;
  CHECK_FALSE(is_right(Operation::allreduce, DType::float32, bytes(result), 9, 0, 2, 0));
}

TEST_CASE("a broadcast is right when it is what the root gave", "[benchmarks][unit]") {
  const auto root = filled<std::uint16_t>(DType::bfloat16, 1, 9);
  CHECK(is_right(Operation::broadcast, DType::bfloat16, bytes(root), 9, 0, 2, 1));
  CHECK_FALSE(is_right(Operation::broadcast, DType::bfloat16, bytes(root), 9, 0, 2, 0));
}

TEST_CASE("an allgather is right when the ranks follow each other", "[benchmarks][unit]") {
  std::vector<float> result = filled<float>(DType::float32, 0, 3);
  const std::vector<float> other = filled<float>(DType::float32, 1, 3);
  result.insert(result.end(), other.begin(), other.end());
  CHECK(is_right(Operation::allgather, DType::float32, bytes(result), 3, 0, 2, 0));
  std::swap(result.front(), result.back());
  CHECK_FALSE(is_right(Operation::allgather, DType::float32, bytes(result), 3, 0, 2, 0));
}

TEST_CASE("of a reducescatter each rank has its own part", "[benchmarks][unit]") {
  const std::vector<float> sum = sum_of_two_ranks(10);
  const std::vector<float> second(sum.begin() + 5, sum.end());
  CHECK(is_right(Operation::reducescatter, DType::float32, bytes(second), 10, 1, 2, 0));
  CHECK_FALSE(is_right(Operation::reducescatter, DType::float32, bytes(second), 10, 0, 2, 0));
}

TEST_CASE("an alltoall brings each rank its part of what everybody gave", "[benchmarks][unit]") {
  std::vector<float> result;
  for (const int sender : {0, 1}) {
    const std::vector<float> given = filled<float>(DType::float32, sender, 10);
    result.insert(result.end(), given.begin() + 5, given.end());
  }
  CHECK(is_right(Operation::alltoall, DType::float32, bytes(result), 10, 1, 2, 0));
  CHECK_FALSE(is_right(Operation::alltoall, DType::float32, bytes(result), 10, 0, 2, 0));
}
