#include <array>

#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/member_ranks.hpp"
#include "tests/runtime/rank_processes.hpp"

/// Groups and compression through the C interface, on real ranks.

using namespace runjob::runtime;

namespace {

template <class T>
runjob_tensor tensor(const T* in, T* out, const std::int64_t& extent, runjob_dtype dtype, std::int64_t out_bytes = 0) {
  return {in, out, out_bytes, &extent, 1, dtype};
}

runjob_code group_allreduce(const char* name, const std::vector<runjob_tensor>& tensors,
                            runjob_compression compression = RUNJOB_COMPRESSION_NONE) {
  runjob_handle handle = 0;
  return runjob_grouped_allreduce(name, tensors.data(), static_cast<std::int32_t>(tensors.size()), RUNJOB_SUM, 1, 1,
                                  compression, 0, -1, &handle);
}

template <class T>
std::vector<T> grouped_output(runjob_handle handle, std::int32_t index) {
  const void* data = nullptr;
  const std::int64_t* shape = nullptr;
  std::int32_t ndim = 0;
  check(runjob_grouped_output(handle, index, &data, &shape, &ndim));
  require(ndim == 1, "dimensions");
  const T* values = static_cast<const T*>(data);
  return {values, values + shape[0]};
}

RankOptions any_ranks(int size) {
  RankOptions options = on_one_host(size);
  options.environment["RUNJOB_SHARED_MEMORY"] = GENERATE("1", "0");
  return options;
}

/// A refusal or a failure, in words.
std::string message_of(runjob_code code, runjob_code expected) {
  require(code == expected, "code " + std::to_string(code) + ": " + runjob_error_message());
  return runjob_error_message();
}

void require_in(const std::string& part, const std::string& text) {
  require(text.find(part) != std::string::npos, text);
}

}  // namespace

TEST_CASE("a group is reduced, in dtypes and sizes of its own, again and again", "[runtime][multiproc]") {
  RankOptions options = any_ranks(2);
  options.environment["RUNJOB_DISABLE_GROUP_FUSION"] = GENERATE("0", "1");
  run_members(options, [](int rank) {
    for (int turn = 0; turn < 3; ++turn) {
      const std::int64_t extents[] = {3, 70000, 0, 1};
      std::vector<float> few{1, 2, static_cast<float>(rank)}, many(70000, 2), out(70000);
      std::int64_t one = 5;
      require(group_allreduce("g", {tensor(few.data(), few.data(), extents[0], RUNJOB_FLOAT32),
                                    tensor(many.data(), out.data(), extents[1], RUNJOB_FLOAT32),
                                    tensor<float>(nullptr, nullptr, extents[2], RUNJOB_FLOAT32),
                                    tensor(&one, &one, extents[3], RUNJOB_INT64)}) == RUNJOB_OK,
              runjob_error_message());
      require(few == std::vector<float>{2, 4, 1}, "few");
      require(out == std::vector<float>(70000, 4), "many");
      require(one == 10, "one");
    }
  });
}

TEST_CASE("groups are gathered, broadcast and scattered tensor by tensor", "[runtime][multiproc]") {
  run_members(any_ranks(2), [](int rank) {
    const std::int64_t extents[] = {1 + rank, 3};
    const std::vector<std::int32_t> a(static_cast<std::size_t>(1 + rank), rank + 1);
    std::vector<double> b{0.5, 1.5, 2.5}, room(6);
    std::vector<runjob_tensor> tensors{tensor<std::int32_t>(a.data(), nullptr, extents[0], RUNJOB_INT32),
                                       tensor(b.data(), room.data(), extents[1], RUNJOB_FLOAT64, 48)};
    runjob_handle handle = 0;
    check(runjob_grouped_allgather("gather", tensors.data(), 2, 0, -1, &handle));
    require(grouped_output<std::int32_t>(handle, 0) == std::vector<std::int32_t>{1, 2, 2}, "gathered ints");
    require(grouped_output<double>(handle, 1) == std::vector<double>{0.5, 1.5, 2.5, 0.5, 1.5, 2.5}, "gathered doubles");
    require(room[5] == 2.5, "room");
    require(runjob_grouped_output(handle, 2, nullptr, nullptr, nullptr) == RUNJOB_INVALID_ARGUMENT, "index");
    runjob_release(handle);

    check(runjob_grouped_reducescatter_async("scatter", tensors.data() + 1, 1, RUNJOB_SUM, 1, 2, 0, &handle));
    check(runjob_wait(handle, -1));
    require(grouped_output<double>(handle, 0) == (rank == 0 ? std::vector<double>{2, 6} : std::vector<double>{10}),
            "scattered");
    runjob_release(handle);

    std::vector<double> c{1.0 * rank, 7};
    const std::int64_t two = 2;
    std::vector<runjob_tensor> buffers{tensor<double>(nullptr, c.data(), two, RUNJOB_FLOAT64),
                                       tensor<double>(nullptr, b.data(), extents[1], RUNJOB_FLOAT64)};
    check(runjob_grouped_broadcast("broadcast", buffers.data(), 2, 1, 0, -1, &handle));
    require(handle == 0 && c == std::vector<double>{1, 7}, "broadcast");
  });
}

TEST_CASE("what the ranks disagree on in a group is named, and the job goes on", "[runtime][multiproc]") {
  run_members(any_ranks(2), [](int rank) {
    std::vector<float> values(4, 1);
    std::vector<std::int32_t> ints(4, 1);
    const std::int64_t three = 3, four = 4;
    const auto floats = [&](const std::int64_t& extent) {
      return tensor(values.data(), values.data(), extent, RUNJOB_FLOAT32);
    };
    const auto is_first = rank == 0;
    require_in("allreduce 'shape_2of2': the ranks disagree on the shape: [4] on rank 0 (alpha); [3] on rank 1 (alpha)",
               message_of(group_allreduce("shape", {floats(four), floats(is_first ? four : three)}), RUNJOB_MISMATCH));
    require_in("allreduce 'dtype_1of1': the ranks disagree on the dtype",
               message_of(group_allreduce("dtype", {is_first ? floats(four)
                                                             : tensor(ints.data(), ints.data(), four, RUNJOB_INT32)}),
                          RUNJOB_MISMATCH));
    const std::vector<runjob_tensor> several(is_first ? 2 : 3, floats(four));
    require_in("the ranks disagree on the number of tensors in the group: 2 on rank 0 (alpha); 3 on rank 1 (alpha)",
               message_of(group_allreduce("number", several), RUNJOB_MISMATCH));
    require_in("disagree on the compression: compression to float16 on rank 0 (alpha); none on rank 1 (alpha)",
               message_of(group_allreduce("wire", {floats(four)},
                                          is_first ? RUNJOB_COMPRESSION_FLOAT16 : RUNJOB_COMPRESSION_NONE),
                          RUNJOB_MISMATCH));
    runjob_handle handle = 0;
    const runjob_code code = is_first ? group_allreduce("kind", {floats(four)})
                                      : runjob_allreduce("kind", values.data(), values.data(), &four, 1, RUNJOB_FLOAT32,
                                                         RUNJOB_SUM, 1, 1, 0, -1, &handle);
    require_in("on the number of tensors in the group: 1 on rank 0 (alpha); no group on rank 1 (alpha)",
               message_of(code, RUNJOB_MISMATCH));
    require(group_allreduce("shape", {floats(four), floats(three)}) == RUNJOB_OK, "afterwards");
  });
}

TEST_CASE("a rank that has joined gives zeros for groups", "[runtime][multiproc]") {
  run_members(any_ranks(2), [](int rank) {
    std::vector<float> a(3, 1), b(5, 2);
    const std::int64_t three = 3, five = 5;
    if (rank == 0) {
      require(group_allreduce(
                  "g",
                  {tensor(a.data(), a.data(), three, RUNJOB_FLOAT32), tensor(b.data(), b.data(), five, RUNJOB_FLOAT32)},
                  RUNJOB_COMPRESSION_BFLOAT16) == RUNJOB_OK,
              runjob_error_message());
      require(a == std::vector<float>(3, 1) && b == std::vector<float>(5, 2), "sums");
    }
    runjob_handle handle = 0;
    check(runjob_join(-1, &handle));
    runjob_release(handle);
  });
}

TEST_CASE("compressed values are rounded on their way and accumulated in float32", "[runtime][multiproc]") {
  run_members(any_ranks(3), [](int rank) {
    const std::int64_t extent = 3;
    for (int turn = 0; turn < 3; ++turn) {
      // 2048 + 1 + 1 is 2048 when rounded to float16 in between, 1 + 2^-12 is 1 in both.
      std::array<float, 3> floats{rank == 0 ? 2048.0F : 1.0F, 1 + 0x1p-12F, 3};
      runjob_handle handle = 0;
      check(runjob_compressed_allreduce("f", floats.data(), floats.data(), &extent, 1, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1,
                                        RUNJOB_COMPRESSION_FLOAT16, 0, -1, &handle));
      require(floats == std::array<float, 3>{2050, 3, 9}, "float32");
      std::array<double, 3> doubles{1 + 0x1p-12, 256, 60000};
      check(runjob_compressed_allreduce_async("d", doubles.data(), doubles.data(), &extent, 1, RUNJOB_FLOAT64,
                                              RUNJOB_AVERAGE, 0.5, 4, RUNJOB_COMPRESSION_BFLOAT16, 0, &handle));
      require(finish(handle) == RUNJOB_OK, runjob_error_message());
      require(doubles == std::array<double, 3>{2, 512, 119808}, "float64");
      std::array<std::int32_t, 3> ints{100000, 1, 2};
      check(runjob_compressed_allreduce("i", ints.data(), ints.data(), &extent, 1, RUNJOB_INT32, RUNJOB_SUM, 1, 1,
                                        RUNJOB_COMPRESSION_FLOAT16, 0, -1, &handle));
      require(ints == std::array<std::int32_t, 3>{300000, 3, 6}, "int32");
    }
  });
}

TEST_CASE("compression of a tensor that is larger than the buffer", "[runtime][multiproc]") {
  run_members(any_ranks(2), [](int rank) {
    const std::int64_t extent = 3000001;
    std::vector<float> values(static_cast<std::size_t>(extent));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) + static_cast<float>(rank);
    runjob_handle handle = 0;
    check(runjob_compressed_allreduce("x", values.data(), values.data(), &extent, 1, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1,
                                      RUNJOB_COMPRESSION_FLOAT16, 0, -1, &handle));
    for (std::size_t i = 0; i < values.size(); ++i)
      require(values[i] == static_cast<float>(2 * (i % 1000) + 1), "element " + std::to_string(i));
  });
}

TEST_CASE("groups that can never be are refused before anything is submitted", "[runtime]") {
  const Outcome outcome = run_alone([] {
    check(runjob_init());
    std::vector<float> values(2, 1);
    const std::int64_t two = 2;
    const runjob_tensor good = tensor(values.data(), values.data(), two, RUNJOB_FLOAT32);
    runjob_tensor wrong = good;
    const auto refusal = [&](const runjob_tensor& second) {
      return message_of(group_allreduce("g", {good, second}), RUNJOB_INVALID_ARGUMENT);
    };
    wrong.dtype = 77;
    require_in("77 is not a dtype", refusal(wrong));
    wrong = good;
    wrong.output = nullptr;
    require_in("allreduce 'g_2of2': the output is null", refusal(wrong));
    wrong = good;
    wrong.ndim = -1;
    require_in("a shape of -1 dimensions", refusal(wrong));
    require_in("allreduce 'g': a group of 0 tensors", message_of(group_allreduce("g", {}), RUNJOB_INVALID_ARGUMENT));
    require_in("3 is not a compression",
               message_of(group_allreduce("g", {good}, static_cast<runjob_compression>(3)), RUNJOB_INVALID_ARGUMENT));
    runjob_handle handle = 0;
    wrong = good;
    wrong.ndim = 0;
    require_in("allgather 'g_1of1': a scalar has no first dimension",
               message_of(runjob_grouped_allgather("g", &wrong, 1, 0, -1, &handle), RUNJOB_INVALID_ARGUMENT));
    require(group_allreduce("g", {good, good}) == RUNJOB_OK, "afterwards");
    return outcome_of(runjob_shutdown());
  });
  INFO(outcome.message);
  CHECK(outcome.ok());
}
