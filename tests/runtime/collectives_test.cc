#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "runtime/collectives/half.hpp"
#include "runtime/collectives/operation.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/rank_processes.hpp"

/// Every collective over real ranks, against a plain loop in double.

using namespace runjob::runtime;

namespace {

constexpr runjob_reduce_op kOps[] = {RUNJOB_AVERAGE, RUNJOB_SUM, RUNJOB_MIN, RUNJOB_MAX, RUNJOB_PRODUCT};

void check_all(const std::vector<Outcome>& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    INFO("rank " << rank << ": " << outcomes[rank].message);
    CHECK(outcomes[rank].ok());
  }
}

/// Runs `body` on `size` ranks between init and shutdown, over every backend that a host can use.
void on_ranks(int size, const std::function<void(int rank)>& body) {
  for (const char* shared_memory : {"1", "0"}) {
    INFO("RUNJOB_SHARED_MEMORY=" << shared_memory);
    RankOptions options = on_one_host(size);
    options.environment = {{"RUNJOB_SHARED_MEMORY", shared_memory}};
    check_all(run_ranks(options, [&](int rank) {
      check(runjob_init());
      body(rank);
      return outcome_of(runjob_shutdown());
    }));
  }
}

/// Small and whole, so that every dtype holds every result exactly: 1, 2 or 3.
int input_value(int rank, std::size_t i) {
  return 1 + (static_cast<int>(i) + rank) % 3;
}

double expected(runjob_reduce_op op, int size, std::size_t i) {
  double result = input_value(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const double value = input_value(rank, i);
    if (op == RUNJOB_SUM || op == RUNJOB_AVERAGE) result += value;
    if (op == RUNJOB_MIN) result = std::min(result, value);
    if (op == RUNJOB_MAX) result = std::max(result, value);
    if (op == RUNJOB_PRODUCT) result *= value;
  }
  return op == RUNJOB_AVERAGE ? result / size : result;
}

template <class T>
struct Codec {
  static T store(double value) { return static_cast<T>(value); }
  static double load(T value) { return static_cast<double>(value); }
};
struct Float16Codec {
  static std::uint16_t store(double value) { return float_to_float16(static_cast<float>(value)); }
  static double load(std::uint16_t bits) { return float16_to_float(bits); }
};
struct Bfloat16Codec {
  static std::uint16_t store(double value) { return float_to_bfloat16(static_cast<float>(value)); }
  static double load(std::uint16_t bits) { return bfloat16_to_float(bits); }
};

template <class T, class C = Codec<T>>
void reduce_all_ops(runjob_dtype dtype, int rank, int size, std::size_t count) {
  for (const runjob_reduce_op op : kOps) {
    std::vector<T> in(count), out(count);
    for (std::size_t i = 0; i < count; ++i) in[i] = C::store(input_value(rank, i));
    const std::string name = "d" + std::to_string(dtype) + "o" + std::to_string(op) + "n" + std::to_string(count);
    check(finish(start_allreduce(name, in, out, dtype, op)));
    for (std::size_t i = 0; i < count; ++i) {
      // Through the type, as the result went: whole numbers are exact, an average is rounded or truncated
      // once.
      const bool is_equal = C::load(out[i]) == C::load(C::store(expected(op, size, i)));
      if (!is_equal) require(false, name + " differs at " + std::to_string(i));
    }
  }
}

/// Rows of three elements, of which the first ranks may get one more than the others.
template <class T, class C = Codec<T>>
void reducescatter_all_ops(runjob_dtype dtype, int rank, int size, std::int64_t rows) {
  const std::size_t count = static_cast<std::size_t>(rows) * 3;
  for (const runjob_reduce_op op : kOps) {
    std::vector<T> in(count);
    for (std::size_t i = 0; i < count; ++i) in[i] = C::store(input_value(rank, i));
    const std::string name = "rs" + std::to_string(dtype) + "o" + std::to_string(op) + "n" + std::to_string(count);
    const std::int64_t shape[] = {rows, 3};
    runjob_handle handle = 0;
    check(runjob_reducescatter_async(name.c_str(), in.data(), nullptr, 0, shape, 2, dtype, op, 1, 1, 0, &handle));
    const auto [out, extents] = take_output<T>(handle);
    std::int64_t first = 0;
    for (int r = 0; r < rank; ++r) first += scattered_rows(rows, r, size);
    require(extents == Shape64{scattered_rows(rows, rank, size), 3}, name + ": shape");
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double value = expected(op, size, static_cast<std::size_t>(first) * 3 + i);
      if (C::load(out[i]) != C::load(C::store(value))) require(false, name + " differs at " + std::to_string(i));
    }
  }
}

/// One dtype of each size. tests/runtime/collectives/shm combines all of them with all reductions.
void reduce_each_size(int rank, int size, std::size_t count) {
  reduce_all_ops<std::uint8_t>(RUNJOB_UINT8, rank, size, count);
  reduce_all_ops<std::uint16_t, Bfloat16Codec>(RUNJOB_BFLOAT16, rank, size, count);
  reduce_all_ops<float>(RUNJOB_FLOAT32, rank, size, count);
  reduce_all_ops<std::int64_t>(RUNJOB_INT64, rank, size, count);
}

}  // namespace

TEST_CASE("every reduction of each size of element agrees with a loop, for messages of all sizes",
          "[runtime][multiproc]") {
  const int size = GENERATE(1, 2, 3, 4);
  on_ranks(size, [&](int rank) {
    for (const std::size_t count : {0, 1, 7, 1001, 20011}) reduce_each_size(rank, size, count);
  });
}

TEST_CASE("each other dtype agrees with a loop", "[runtime][multiproc]") {
  constexpr int kSize = 3;
  on_ranks(kSize, [](int rank) {
    reduce_all_ops<std::int8_t>(RUNJOB_INT8, rank, kSize, 7);
    reduce_all_ops<std::uint16_t>(RUNJOB_UINT16, rank, kSize, 7);
    reduce_all_ops<std::int16_t>(RUNJOB_INT16, rank, kSize, 7);
    reduce_all_ops<std::int32_t>(RUNJOB_INT32, rank, kSize, 7);
    reduce_all_ops<std::uint16_t, Float16Codec>(RUNJOB_FLOAT16, rank, kSize, 7);
    reduce_all_ops<double>(RUNJOB_FLOAT64, rank, kSize, 7);
  });
}

TEST_CASE("bool reductions are or and and", "[runtime][multiproc]") {
  on_ranks(3, [](int rank) {
    const std::vector<std::uint8_t> in = {0, static_cast<std::uint8_t>(rank == 1), 1};
    for (const runjob_reduce_op op : {RUNJOB_SUM, RUNJOB_MAX, RUNJOB_PRODUCT, RUNJOB_MIN}) {
      std::vector<std::uint8_t> out(3);
      check(finish(start_allreduce("b" + std::to_string(op), in, out, RUNJOB_BOOL, op)));
      const bool either = op == RUNJOB_SUM || op == RUNJOB_MAX;
      require(out == std::vector<std::uint8_t>{0, either, 1}, "bool op " + std::to_string(op));
    }
  });
}

TEST_CASE("scaling and averaging of integers truncate toward zero", "[runtime][multiproc]") {
  on_ranks(2, [](int rank) {
    const std::vector<std::int32_t> in = {rank == 0 ? -3 : -4, 5};
    std::vector<std::int32_t> out(2);
    check(finish(start_allreduce("average", in, out, RUNJOB_INT32, RUNJOB_AVERAGE)));
    require(out == std::vector<std::int32_t>{-3, 5}, "average");
    check(finish(start_allreduce("scaled", in, out, RUNJOB_INT32, RUNJOB_SUM, 0.5, 3)));
    require(out == std::vector<std::int32_t>{-9, 12}, "scaled");  // (-1) + (-2), 2 + 2, each times 3
  });
}

TEST_CASE("16-bit sums are accumulated in float32 and rounded once", "[runtime][multiproc]") {
  on_ranks(3, [](int rank) {
    // 256 + 1 is no bfloat16, but 256 + 1 + 1 is.
    std::vector<std::uint16_t> values = {float_to_bfloat16(rank == 0 ? 256.0F : 1.0F)};
    check(finish(start_allreduce("x", values, values, RUNJOB_BFLOAT16)));
    require(bfloat16_to_float(values[0]) == 258.0F, std::to_string(bfloat16_to_float(values[0])));
  });
}

#if defined(__SSE__)
TEST_CASE("ranks get the same bits although one of them flushes denormals and rounds up", "[runtime][multiproc]") {
  constexpr unsigned kFlushes = 0x8040, kRoundsUp = 0x4000, kFlags = 0x3f;  // bits of MXCSR
  on_ranks(3, [](int rank) {
    if (rank == 1) __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | kFlushes | kRoundsUp);
    const unsigned before = __builtin_ia32_stmxcsr() & ~kFlags;
    for (const std::size_t count : {2, 2, 2, 1001, 1001, 1001, 50001, 400001}) {
      std::vector<float> in(count), out(count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto bits = static_cast<std::uint32_t>(i * 3 + static_cast<std::size_t>(rank));
        in[i] = std::bit_cast<float>((i % 2 == 0 ? 0 : 0x3f800000) + bits);
      }
      const auto extent = static_cast<std::int64_t>(count);
      check(runjob_allreduce(("n" + std::to_string(count)).c_str(), in.data(), out.data(), &extent, 1, RUNJOB_FLOAT32,
                             RUNJOB_SUM, 1, 1, 0, -1, nullptr));
      std::vector<std::uint8_t> bytes(count * sizeof(float)), least(bytes.size()), most(bytes.size());
      std::memcpy(bytes.data(), out.data(), bytes.size());
      check(finish(start_allreduce("least", bytes, least, RUNJOB_UINT8, RUNJOB_MIN)));
      check(finish(start_allreduce("most", bytes, most, RUNJOB_UINT8, RUNJOB_MAX)));
      require(least == most, std::to_string(count) + " elements differ");
      require(std::bit_cast<std::uint32_t>(out[0]) == 0 + 1 + 2, "a sum of denormals");
    }
    require((__builtin_ia32_stmxcsr() & ~kFlags) == before, "the caller's environment");
  });
}
#endif

TEST_CASE("a broadcast gives every rank the root's values", "[runtime][multiproc]") {
  const int size = GENERATE(1, 2, 3, 4);
  on_ranks(size, [&](int rank) {
    for (int root = 0; root < size; ++root) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{999}, std::size_t{300000}}) {
        std::vector<double> values(count, rank == root ? root + 0.5 : -1);
        const auto extent = static_cast<std::int64_t>(count);
        const std::string name = std::to_string(root) + "/" + std::to_string(count);
        runjob_handle handle = 0;
        check(runjob_broadcast_async(name.c_str(), values.data(), &extent, 1, RUNJOB_FLOAT64, root, 0, &handle));
        check(finish(handle));
        require(values == std::vector<double>(count, root + 0.5), name);
      }
    }
  });
}

TEST_CASE("an allgather concatenates unequal parts in rank order, empty ones too", "[runtime][multiproc]") {
  const int size = GENERATE(1, 2, 3, 4);
  on_ranks(size, [&](int rank) {
    for (int empty = -1; empty <= size; ++empty) {  // which rank has nothing; at `size` all have nothing
      const auto rows_of = [&](int r) { return r == empty || empty == size ? 0 : 2 * r + 1; };
      std::vector<std::int16_t> in, all;
      for (int r = 0; r < size; ++r) {
        for (int i = 0; i < 3 * rows_of(r); ++i) {
          all.push_back(static_cast<std::int16_t>(100 * r + i));
          if (r == rank) in.push_back(all.back());
        }
      }
      const std::int64_t shape[] = {rows_of(rank), 3};
      runjob_handle handle = 0;
      check(runjob_allgather_async(("g" + std::to_string(empty)).c_str(), in.data(), nullptr, 0, shape, 2, RUNJOB_INT16,
                                   0, &handle));
      check(runjob_wait(handle, -1));
      const void* data = nullptr;
      const std::int64_t* extents = nullptr;
      std::int32_t ndim = 0;
      check(runjob_output(handle, &data, &extents, &ndim));
      require(ndim == 2 && extents[1] == 3 && extents[0] * 3 == static_cast<std::int64_t>(all.size()), "shape");
      require(all.empty() || std::memcmp(data, all.data(), all.size() * 2) == 0, "values");
      runjob_release(handle);
    }
  });
}

TEST_CASE("a reducescatter leaves each rank its rows, for every reduction of each size of element",
          "[runtime][multiproc]") {
  const int size = GENERATE(1, 2, 3, 4);
  on_ranks(size, [&](int rank) {
    for (const std::int64_t rows : {0, 1, 2, 7, 1001}) {
      reducescatter_all_ops<std::uint8_t>(RUNJOB_UINT8, rank, size, rows);
      reducescatter_all_ops<std::uint16_t, Bfloat16Codec>(RUNJOB_BFLOAT16, rank, size, rows);
      reducescatter_all_ops<float>(RUNJOB_FLOAT32, rank, size, rows);
      reducescatter_all_ops<std::int64_t>(RUNJOB_INT64, rank, size, rows);
    }
    reducescatter_all_ops<float>(RUNJOB_FLOAT32, rank, size, 70001);
  });
}

TEST_CASE("a reducescatter scales before and after", "[runtime][multiproc]") {
  on_ranks(2, [](int rank) {
    const std::vector<std::int32_t> in = {rank == 0 ? -3 : -4, 5};
    const std::int64_t extent = 2;
    runjob_handle handle = 0;
    check(runjob_reducescatter_async("x", in.data(), nullptr, 0, &extent, 1, RUNJOB_INT32, RUNJOB_SUM, 0.5, 3, 0,
                                     &handle));
    require(take_output<std::int32_t>(handle).first == std::vector<std::int32_t>{rank == 0 ? -9 : 12}, "scaled");
  });
}

TEST_CASE("an alltoall gives each rank its rows of each, uneven and empty ones too", "[runtime][multiproc]") {
  const int size = GENERATE(1, 2, 3, 4);
  on_ranks(size, [&](int rank) {
    for (const int factor : {0, 1, 3000}) {
      const auto rows = [&](int from, int to) { return std::int64_t{factor} * ((from + 2 * to) % 3); };
      const auto value = [](int from, int to, std::size_t i) {
        return 1000.0 * from + 100 * to + static_cast<double>(i);
      };
      Shape64 splits, received;
      std::vector<double> in, all;
      for (int other = 0; other < size; ++other) {
        splits.push_back(rows(rank, other));
        received.push_back(rows(other, rank));
        for (std::size_t i = 0; i < 2 * static_cast<std::size_t>(rows(rank, other)); ++i)
          in.push_back(value(rank, other, i));
        for (std::size_t i = 0; i < 2 * static_cast<std::size_t>(rows(other, rank)); ++i)
          all.push_back(value(other, rank, i));
      }
      const std::int64_t shape[] = {static_cast<std::int64_t>(in.size()) / 2, 2};
      runjob_handle handle = 0;
      check(runjob_alltoall_async(("a" + std::to_string(factor)).c_str(), in.data(), nullptr, 0, shape, 2,
                                  splits.data(), size, RUNJOB_FLOAT64, 0, &handle));
      check(runjob_wait(handle, -1));
      const std::int64_t* got = nullptr;
      std::int32_t count = 0;
      check(runjob_received_splits(handle, &got, &count));
      require(Shape64(got, got + count) == received, "received splits");
      const auto [out, extents] = take_output<double>(handle);
      require(extents == Shape64{static_cast<std::int64_t>(all.size()) / 2, 2}, "shape");
      require(out == all, "values");
    }
  });
}

TEST_CASE("an alltoall without splits divides the rows evenly, or says that it cannot", "[runtime][multiproc]") {
  on_ranks(2, [](int rank) {
    const std::vector<std::int32_t> in = {10 * rank, 10 * rank + 1, 10 * rank + 2, 10 * rank + 3};
    std::int64_t extent = 4;
    runjob_handle handle = 0;
    check(runjob_alltoall_async("x", in.data(), nullptr, 0, &extent, 1, nullptr, 0, RUNJOB_INT32, 0, &handle));
    const int first = 2 * rank;
    require(
        take_output<std::int32_t>(handle).first == std::vector<std::int32_t>{first, first + 1, first + 10, first + 11},
        "values");
    extent = 3;
    require(runjob_alltoall_async("x", in.data(), nullptr, 0, &extent, 1, nullptr, 0, RUNJOB_INT32, 0, &handle) ==
                RUNJOB_INVALID_ARGUMENT,
            "3 rows cannot be split");
    require(
        runjob_error_message() == std::string("alltoall 'x': 3 rows cannot be split evenly among 2 ranks; give splits"),
        runjob_error_message());
    const Shape64 splits = {1, 1};
    require(runjob_alltoall_async("x", in.data(), nullptr, 0, &extent, 1, splits.data(), 2, RUNJOB_INT32, 0, &handle) ==
                RUNJOB_INVALID_ARGUMENT,
            "2 of 3 rows");
  });
}

TEST_CASE("ranks that disagree on an alltoall's or a reducescatter's rows all learn it", "[runtime][multiproc]") {
  on_ranks(2, [](int rank) {
    const std::vector<float> in(12);
    const std::int64_t shape[] = {2, rank == 0 ? 2 : 3};
    runjob_handle handle = 0;
    check(runjob_alltoall_async("a", in.data(), nullptr, 0, shape, 2, nullptr, 0, RUNJOB_FLOAT32, 0, &handle));
    require(finish(handle) == RUNJOB_MISMATCH, "alltoall");
    check(
        runjob_reducescatter_async("r", in.data(), nullptr, 0, shape, 2, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1, 0, &handle));
    require(finish(handle) == RUNJOB_MISMATCH, "reducescatter");
    check(small_allreduce("the job goes on"));
  });
}

TEST_CASE("ranks may submit in different orders, a thousand tensors at once", "[runtime][multiproc]") {
  on_ranks(3, [](int rank) {
    constexpr int kTensors = 1000;
    std::vector<std::vector<float>> values;
    for (int i = 0; i < kTensors; ++i) values.push_back(std::vector<float>(1 + i % 5, static_cast<float>(i + rank)));
    std::vector<runjob_handle> handles(kTensors);
    for (int step = 0; step < kTensors; ++step) {
      const auto i = static_cast<std::size_t>(rank == 0 ? step : rank == 1 ? kTensors - 1 - step : step * 7 % kTensors);
      handles[i] = start_allreduce("t" + std::to_string(i), values[i], values[i], RUNJOB_FLOAT32);
    }
    for (std::size_t i = 0; i < handles.size(); ++i) {
      check(finish(handles[i]));
      require(values[i].back() == static_cast<float>(3 * i + 3), "tensor " + std::to_string(i));
    }
  });
}

TEST_CASE("a barrier is done when all have come, and not before", "[runtime][multiproc]") {
  on_ranks(2, [](int rank) {
    if (rank == 0) {
      runjob_handle handle = 0;
      check(runjob_barrier_async("late", 0, &handle));
      require(runjob_wait(handle, 0) == RUNJOB_IN_PROGRESS || runjob_poll(handle) == 1, "neither waiting nor done");
      check(small_allreduce("meet"));
      check(finish(handle));
    } else {
      runjob_handle handle = 0;
      std::vector<float> values{1, 2, 3};
      handle = start_allreduce("meet", values, values, RUNJOB_FLOAT32);
      check(barrier("late"));
      check(finish(handle));
    }
  });
}

TEST_CASE("ranks with less data join, and the others' sums go on without them", "[runtime][multiproc]") {
  RankOptions options = on_one_host(3);
  options.environment = {{"RUNJOB_SHARED_MEMORY", GENERATE("0", "1")}};
  const std::size_t count = GENERATE(3u, 20000u);
  check_all(run_ranks(options, [&](int rank) {
    check(runjob_init());
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (int step = 0; step < 2 + 2 * rank; ++step) {
        std::vector<float> values(count, 1);
        check(finish(start_allreduce("x", values, values, RUNJOB_FLOAT32)));
        const float ranks = step < 2 ? 3 : step < 4 ? 2 : 1;
        require(values == std::vector<float>(count, ranks), "step " + std::to_string(step));
      }
      if (rank == 2) {
        const std::int64_t extent = 1;
        runjob_handle gather = 0;
        check(runjob_allgather_async("g", &extent, nullptr, 0, &extent, 1, RUNJOB_INT64, 0, &gather));
        require(finish(gather) == RUNJOB_MISMATCH, "an allgather went on");
        check(barrier("alone"));
      }
      runjob_handle join = 0;
      check(runjob_join_async(&join));
      require(take_output<std::int32_t>(join).first == std::vector<std::int32_t>{2}, "the last rank");
    }
    return outcome_of(runjob_shutdown());
  }));
}
