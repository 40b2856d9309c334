#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"

using namespace runjob::runtime;

namespace {

/// More than two pieces of a staged call.
constexpr std::size_t kBytes = 5u << 20;

/// The bits of small whole numbers as values of a type.
template <class T>
std::vector<T> values_of(std::size_t count, int rank, T (*convert)(int)) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = convert(static_cast<int>(i % 13) + rank);
  return values;
}

/// An allreduce of two ranks, and a broadcast of rank 1's.
template <class T>
void check_dtype(const UserStream& stream, int rank, runjob_dtype dtype, T (*convert)(int)) {
  const std::size_t count = kBytes / sizeof(T);
  const auto extent = static_cast<std::int64_t>(count);
  const std::string what = "dtype " + std::to_string(dtype);
  const GpuTensor<T> in(stream, values_of(count, rank, convert)), out(stream, std::vector<T>(count));
  const runjob_tensor both{in.get(), out.get(), static_cast<std::int64_t>(out.bytes()), &extent, 1, dtype};
  runjob_operation operation = gpu_operation(what.c_str(), RUNJOB_ALLREDUCE, both, stream);
  operation.op = RUNJOB_MAX;
  run_on(stream, operation);
  require(out.values() == values_of(count, 1, convert), "the maximum of " + what);
  const runjob_tensor one{in.get(), in.get(), 0, &extent, 1, dtype};
  operation = gpu_operation(what.c_str(), RUNJOB_BROADCAST, one, stream);
  operation.root = 1;
  run_on(stream, operation);
  require(in.values() == values_of(count, 1, convert), "the broadcast of " + what);
}

template <class T>
T number(int value) {
  return static_cast<T>(value);
}
std::uint16_t float16(int value) {  // of 0 to 15
  int exponent = 0;
  while (value >> (exponent + 1) != 0) ++exponent;
  return value == 0 ? 0 : static_cast<std::uint16_t>(((exponent + 15) << 10) | ((value << (10 - exponent)) & 0x3ff));
}
std::uint16_t bfloat16(int value) {
  const auto wide = static_cast<float>(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &wide, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

void check_all(int rank) {
  const UserStream stream(0);
  check_dtype<std::uint8_t>(stream, rank, RUNJOB_UINT8, number);
  check_dtype<std::int8_t>(stream, rank, RUNJOB_INT8, number);
  check_dtype<std::uint16_t>(stream, rank, RUNJOB_UINT16, number);
  check_dtype<std::int16_t>(stream, rank, RUNJOB_INT16, number);
  check_dtype<std::int32_t>(stream, rank, RUNJOB_INT32, number);
  check_dtype<std::int64_t>(stream, rank, RUNJOB_INT64, number);
  check_dtype<std::uint16_t>(stream, rank, RUNJOB_FLOAT16, float16);
  check_dtype<std::uint16_t>(stream, rank, RUNJOB_BFLOAT16, bfloat16);
  check_dtype<float>(stream, rank, RUNJOB_FLOAT32, number);
  check_dtype<double>(stream, rank, RUNJOB_FLOAT64, number);
  check_dtype<std::uint8_t>(stream, rank, RUNJOB_BOOL, [](int value) -> std::uint8_t { return value > 0 ? 1 : 0; });
}

}  // namespace

TEST_CASE("tensors of all types go through the host in pieces, on a host and between hosts, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  RankOptions options = on_one_host(2);  // which both use GPU 0
  if (GENERATE(false, true)) options.hosts = {"alpha", "beta"};
  options.environment = {{"RUNJOB_NCCL_LIBRARY", "/nowhere/libnccl.so.2"}};
  on_ranks(options, check_all);
}
