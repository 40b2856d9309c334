#include "runtime/operations/adasum.hpp"

#include <cmath>

#include "runtime/collectives/half.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/member_ranks.hpp"
#include "tests/runtime/operations/adasum_tree.hpp"

/// Adasum over real ranks, beside a tree in float64.

using namespace runjob::runtime;

namespace {

/// A tensor of one rank in any dtype, with the values that it holds exactly.
struct Typed {
  runjob_dtype dtype;
  std::size_t element;
  double epsilon;

  void store(std::byte* to, double value) const {
    const auto single = static_cast<float>(value);
    const std::uint16_t half = dtype == RUNJOB_FLOAT16 ? float_to_float16(single) : float_to_bfloat16(single);
    const void* from = dtype == RUNJOB_FLOAT64 ? static_cast<const void*>(&value) : &single;
    if (element == sizeof half) from = &half;
    std::memcpy(to, from, element);
  }
  double load(const std::byte* from) const {
    std::uint16_t half = 0;
    float single = 0;
    double value = 0;
    void* const to = dtype == RUNJOB_FLOAT64 ? static_cast<void*>(&value) : &single;
    std::memcpy(element == sizeof half ? static_cast<void*>(&half) : to, from, element);
    if (dtype == RUNJOB_FLOAT64) return value;
    if (dtype == RUNJOB_FLOAT32) return single;
    return dtype == RUNJOB_FLOAT16 ? float16_to_float(half) : bfloat16_to_float(half);
  }
};

const Typed kFloat32{RUNJOB_FLOAT32, 4, 0x1p-23};
const Typed kTypes[] = {
    {RUNJOB_FLOAT16, 2, 0x1p-10}, {RUNJOB_BFLOAT16, 2, 0x1p-7}, kFloat32, {RUNJOB_FLOAT64, 8, 0x1p-52}};

using Bytes = std::vector<std::byte>;

Vector values_of(int rank, std::size_t count, std::size_t number = 0) {
  Vector values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::sin(static_cast<double>(i * 7 + number) + 1.3 * rank) * (1 + rank) * 0.25;
  return values;
}

Bytes stored(const Typed& type, const Vector& values) {
  Bytes bytes(values.size() * type.element);
  for (std::size_t i = 0; i < values.size(); ++i) type.store(&bytes[i * type.element], values[i]);
  return bytes;
}

Vector loaded(const Typed& type, const Bytes& bytes) {
  Vector values(bytes.size() / type.element);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = type.load(&bytes[i * type.element]);
  return values;
}

/// The tree of these ranks' values, as the dtype holds them.
Vector expected(const Typed& type, const std::vector<int>& ranks, std::size_t count, std::size_t number = 0) {
  std::vector<Vector> vectors;
  for (const int rank : ranks) vectors.push_back(loaded(type, stored(type, values_of(rank, count, number))));
  return adasum_tree(vectors);
}

void require_close(const Typed& type, const Bytes& result, const Vector& values, const std::string& what) {
  const double error = distance(loaded(type, result), values);
  require(error < 4 * type.epsilon + 100 * 0x1p-52,
          what + ": the error is " + std::to_string(error / type.epsilon) + " epsilon");
}

Bytes adasum(const std::string& name, const Typed& type, const Bytes& input, double prescale = 1, double postscale = 1,
             runjob_compression compression = RUNJOB_COMPRESSION_NONE, std::int32_t set = 0) {
  Bytes output(input.size());
  const auto count = static_cast<std::int64_t>(input.size() / type.element);
  runjob_handle handle = 0;
  check(runjob_compressed_allreduce(name.c_str(), input.data(), output.data(), &count, 1, type.dtype, RUNJOB_ADASUM,
                                    prescale, postscale, compression, set, -1, &handle));
  return output;
}

std::vector<Bytes> grouped(const std::string& name, const Typed& type, std::vector<Bytes> inputs) {
  std::vector<std::int64_t> counts;
  std::vector<runjob_tensor> tensors;
  for (const Bytes& input : inputs) counts.push_back(static_cast<std::int64_t>(input.size() / type.element));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    tensors.push_back({inputs[i].data(), inputs[i].data(), 0, &counts[i], 1, type.dtype});
  runjob_handle handle = 0;
  check(runjob_grouped_allreduce(name.c_str(), tensors.data(), static_cast<std::int32_t>(tensors.size()), RUNJOB_ADASUM,
                                 1, 1, RUNJOB_COMPRESSION_NONE, 0, -1, &handle));
  return inputs;
}

std::vector<int> all(int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
  return ranks;
}

/// One host with shared memory, one without, and two hosts of which the first has one rank more.
RankOptions any_job(int size) {
  const int kind = GENERATE(0, 1, 2);
  RankOptions options = on_one_host(size);
  if (kind == 1) options.environment = {{"RUNJOB_SHARED_MEMORY", "0"}};
  for (int rank = 0; kind == 2 && rank < size; ++rank)
    options.hosts[static_cast<std::size_t>(rank)] = rank <= size / 2 ? "alpha" : "beta";
  return options;
}

}  // namespace

TEST_CASE("Adasum of real ranks is the tree's, alone and in a group with the same bits", "[runtime][multiproc]") {
  const int size = GENERATE(1, 2, 3, 4);
  run_members(any_job(size), [&](int rank) {
    for (const Typed& type : kTypes) {
      const std::string name = "t" + std::to_string(type.dtype);
      std::vector<Bytes> inputs, alone;
      for (const std::size_t count : {1u, 2u, 1000u, 0u, 40001u}) {
        inputs.push_back(stored(type, values_of(rank, count, count)));
        alone.push_back(adasum(name + "n" + std::to_string(count), type, inputs.back()));
        require_close(type, alone.back(), expected(type, all(size), count, count), name);
      }
      require(grouped(name, type, inputs) == alone, name + ": a group has other bits");
    }
  });
}

TEST_CASE("Adasum is scaled, compressed, and in place", "[runtime][multiproc]") {
  run_members(any_job(3), [](int rank) {
    constexpr std::size_t kCount = 5000;
    const Bytes input = stored(kFloat32, values_of(rank, kCount));
    Vector sum = expected(kFloat32, all(3), kCount);
    for (double& value : sum) value *= 3 * -0.7;
    require_close(kFloat32, adasum("scaled", kFloat32, input, 3, -0.7), sum, "scaled");
    const Bytes compressed = adasum("compressed", kFloat32, input, 3, -0.7, RUNJOB_COMPRESSION_FLOAT16);
    require(distance(loaded(kFloat32, compressed), sum) < 0x1p-10, "compressed");
    const Typed wide{RUNJOB_FLOAT64, 8, 0x1p-7};
    const Bytes bfloat16 =
        adasum("wide", wide, stored(wide, values_of(rank, kCount)), 1, 5, RUNJOB_COMPRESSION_BFLOAT16);
    for (double& value : sum) value *= 5 / (3 * -0.7);
    require_close(wide, bfloat16, sum, "wide");
  });
}

TEST_CASE("Adasum of a process set, with ranks that have joined, and of what is not finite", "[runtime][multiproc]") {
  RankOptions options = any_job(3);
  options.environment["RUNJOB_DYNAMIC_PROCESS_SETS"] = "1";
  run_members(options, [](int rank) {
    constexpr std::size_t kCount = 700;
    const Bytes input = stored(kFloat32, values_of(rank, kCount));
    std::int32_t set = 0;
    const std::int32_t members[] = {0, 2};
    check(runjob_process_set_add(members, 2, &set));
    if (rank != 1) {
      const Bytes sum = adasum("set", kFloat32, input, 1, 1, RUNJOB_COMPRESSION_NONE, set);
      require_close(kFloat32, sum, expected(kFloat32, {0, 2}, kCount), "set");
    }
    Bytes bad = input;
    if (rank == 1) kFloat32.store(bad.data() + 4 * 699, INFINITY);
    for (const double value : loaded(kFloat32, adasum("bad", kFloat32, bad)))
      require(std::isnan(value), "a value is not NaN");
    if (rank != 1) {
      std::vector<Vector> vectors{values_of(0, kCount), Vector(kCount), values_of(2, kCount)};
      require_close(kFloat32, adasum("joined", kFloat32, input), adasum_tree(vectors), "joined");
    }
    runjob_handle join = 0;
    check(runjob_join_async(&join));
    check(finish(join));
  });
}

TEST_CASE("Adasum of values that are not floats, and of a reducescatter, is refused", "[runtime][multiproc]") {
  run_members(on_one_host(2), [](int) {
    std::vector<std::int32_t> ints(4);
    const std::int64_t count = 4;
    runjob_handle handle = 0;
    const auto refused = [&](runjob_code code, const std::string& why) {
      require(code == RUNJOB_INVALID_ARGUMENT, "it is not refused");
      require(runjob_error_message() == why, runjob_error_message());
    };
    refused(
        runjob_allreduce_async("x", ints.data(), ints.data(), &count, 1, RUNJOB_INT32, RUNJOB_ADASUM, 1, 1, 0, &handle),
        "allreduce 'x': Adasum of int32 values is not defined; convert them to float32");
    refused(
        runjob_allreduce_async("x", ints.data(), ints.data(), &count, 1, RUNJOB_BOOL, RUNJOB_ADASUM, 1, 1, 0, &handle),
        "allreduce 'x': Adasum of bool values is not defined; convert them to float32");
    refused(runjob_reducescatter_async("x", ints.data(), nullptr, 0, &count, 1, RUNJOB_FLOAT32, RUNJOB_ADASUM, 1, 1, 0,
                                       &handle),
            "reducescatter 'x': Adasum is a reduction of allreduces alone");
  });
}

TEST_CASE("the C interface gives the factors of several tensors, without a job", "[runtime][unit]") {
  const double dots[] = {1, 1, 1, 1, 1, 0, 0, 4};
  double factors[4] = {};
  CHECK(runjob_adasum_factors(dots, 2, 2, factors) == RUNJOB_OK);
  CHECK(std::vector<double>(factors, factors + 4) == std::vector<double>{0.5, 0.5, 1, 1});
  CHECK(runjob_adasum_factors(nullptr, 0, 2, nullptr) == RUNJOB_OK);
  CHECK(runjob_adasum_factors(dots, 1, 0, factors) == RUNJOB_INVALID_ARGUMENT);
  CHECK(runjob_adasum_factors(nullptr, 1, 2, factors) == RUNJOB_INVALID_ARGUMENT);
}
