#include <algorithm>
#include <csignal>
#include <numeric>
#include <random>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/member_ranks.hpp"
#include "tests/runtime/rank_processes.hpp"

/// Many allreduces in flight on real ranks: fused or not, the results are the same.

using namespace runjob::runtime;

namespace {

constexpr std::size_t kTensors = 1000;

/// One of many: its size, dtype and reduction follow from its number.
struct Tensor {
  std::size_t number;
  std::vector<std::byte> bytes;
  runjob_handle handle = 0;

  runjob_dtype dtype() const {
    constexpr runjob_dtype kDTypes[] = {RUNJOB_FLOAT32, RUNJOB_INT32, RUNJOB_FLOAT32, RUNJOB_FLOAT64};
    return kDTypes[number % 4];
  }
  runjob_reduce_op op() const { return number % 5 == 0 ? RUNJOB_MAX : number % 7 == 0 ? RUNJOB_AVERAGE : RUNJOB_SUM; }
  double prescale() const { return number % 11 == 0 ? 2 : 1; }
  std::int64_t count() const { return static_cast<std::int64_t>(number % 97 == 0 ? 20000 : number * 13 % 1500); }
  std::size_t element() const { return dtype() == RUNJOB_FLOAT64 ? 8 : 4; }

  void fill(int rank) {
    bytes.resize(static_cast<std::size_t>(count()) * element());
    for (std::int64_t i = 0; i < count(); ++i) {
      const double value = static_cast<double>((i * 7 + static_cast<std::int64_t>(number)) % 1000) * 1.1 + rank * 0.3;
      std::byte* place = bytes.data() + static_cast<std::size_t>(i) * element();
      const auto as_float = static_cast<float>(value);
      const auto as_int = static_cast<std::int32_t>(value);
      if (dtype() == RUNJOB_FLOAT64) std::memcpy(place, &value, sizeof value);
      if (dtype() == RUNJOB_FLOAT32) std::memcpy(place, &as_float, sizeof as_float);
      if (dtype() == RUNJOB_INT32) std::memcpy(place, &as_int, sizeof as_int);
    }
  }

  std::string name() const { return "t" + std::to_string(number); }

  void start() { check(try_to_start()); }
  runjob_code try_to_start() {
    const std::int64_t extent = count();
    return runjob_allreduce_async(name().c_str(), bytes.data(), bytes.data(), &extent, 1, dtype(), op(), prescale(), 1,
                                  0, &handle);
  }
};

std::vector<Tensor> make_tensors(int rank) {
  std::vector<Tensor> tensors;
  for (std::size_t number = 0; number < kTensors; ++number) {
    tensors.push_back({number, {}});
    tensors.back().fill(rank);
  }
  return tensors;
}

std::uint64_t hash_of(const std::vector<Tensor>& tensors) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const Tensor& tensor : tensors) {
    for (const std::byte byte : tensor.bytes) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
  }
  return hash;
}

/// All in flight at once, in an order of the rank's own; the hash of all results.
std::uint64_t all_at_once(int rank) {
  std::vector<Tensor> tensors = make_tensors(rank);
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(rank)));
  for (const std::size_t index : order) tensors[index].start();
  for (Tensor& tensor : tensors) require(finish(tensor.handle) == RUNJOB_OK, tensor.name());
  return hash_of(tensors);
}

/// One after the other, so that nothing can be fused.
std::uint64_t one_by_one(int rank) {
  std::vector<Tensor> tensors = make_tensors(rank);
  for (Tensor& tensor : tensors) {
    tensor.start();
    require(finish(tensor.handle) == RUNJOB_OK, tensor.name());
  }
  return hash_of(tensors);
}

RankOptions with(RankOptions options, const std::string& name, const std::string& value) {
  options.environment[name] = value;
  return options;
}

}  // namespace

TEST_CASE("1000 tensors in another order on each rank have the bits that they have one by one",
          "[runtime][multiproc]") {
  const int size = GENERATE(2, 3);
  run_members(on_one_host(size), [](int rank) {
    const std::uint64_t expected = one_by_one(rank);
    for (int turn = 0; turn < 3; ++turn)  // the first one is negotiated in full
      require(all_at_once(rank) == expected, "turn " + std::to_string(turn) + " has other bits");
  });
}

TEST_CASE("without fusion, and with every small buffer, the bits are the same", "[runtime][multiproc]") {
  const char* threshold = GENERATE("0", "5000", "64MB");
  run_members(with(on_one_host(2), "RUNJOB_FUSION_THRESHOLD", threshold), [](int rank) {
    const std::uint64_t expected = one_by_one(rank);
    require(all_at_once(rank) == expected, "other bits");
  });
}

TEST_CASE("the threshold is rank 0's", "[runtime][multiproc]") {
  const auto differently = [](int rank) {
    ::setenv("HOROVOD_FUSION_THRESHOLD", rank == 0 ? "4000" : "0", 1);
    check(runjob_init());
    const std::uint64_t expected = one_by_one(rank);
    require(all_at_once(rank) == expected, "other bits");
    return outcome_of(runjob_shutdown());
  };
  for (const Outcome& outcome : run_ranks(on_one_host(2), differently)) {
    INFO(outcome.message);
    REQUIRE(outcome.ok());
  }
}

TEST_CASE("over TCP, where the coordinator orders, 1000 tensors are right and alike on all ranks",
          "[runtime][multiproc]") {
  run_members(with(on_one_host(2), "RUNJOB_SHARED_MEMORY", "0"), [](int rank) {
    const std::uint64_t expected = one_by_one(rank);  // of two ranks, sums have one order only
    require(all_at_once(rank) == expected, "other bits");
  });
}

TEST_CASE("a cycle time changes nothing but when", "[runtime][multiproc]") {
  const char* memory = GENERATE("0", "1");
  RankOptions options = with(on_one_host(2), "RUNJOB_SHARED_MEMORY", memory);
  options.environment["HOROVOD_CYCLE_TIME"] = "3600000";  // an hour: everything must end it early
  run_members(options, [](int rank) {
    require(all_at_once(rank) == all_at_once(rank), "other bits");
    require(small_allreduce("blocking") == RUNJOB_OK, "blocking");
    require(barrier("b") == RUNJOB_OK, "barrier");
  });
}

TEST_CASE("a cycle ends by itself", "[runtime][multiproc]") {
  const char* memory = GENERATE("0", "1");
  RankOptions options = with(on_one_host(2), "RUNJOB_SHARED_MEMORY", memory);
  options.environment["RUNJOB_CYCLE_TIME"] = "2.5";
  run_members(options, [](int) {
    std::vector<float> values(4, 1);
    const runjob_handle handle = start_allreduce("x", values, values, RUNJOB_FLOAT32);
    while (runjob_poll(handle) == 0) {
    }
    require(finish(handle) == RUNJOB_OK && values[3] == 2, "x");
  });
}

TEST_CASE("a shutdown ends what waits for its cycle", "[runtime][multiproc]") {
  const char* memory = GENERATE("0", "1");
  RankOptions options = with(on_one_host(2), "RUNJOB_SHARED_MEMORY", memory);
  options.environment["RUNJOB_CYCLE_TIME"] = "3600000";
  for (const Outcome& outcome : run_ranks(options, [](int) {
         check(runjob_init());
         std::vector<float> values(4, 1);
         const std::int64_t extent = 4;
         runjob_handle handle = 0;
         const runjob_code started = runjob_allreduce_async("x", values.data(), values.data(), &extent, 1,
                                                            RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1, 0, &handle);
         check(runjob_shutdown());
         if (started == RUNJOB_ABORTED) return Outcome{};  // the other rank has left already
         check(started);
         const runjob_code code = finish(handle);  // both ranks may have submitted it before the first one left
         require(code == RUNJOB_ABORTED || code == RUNJOB_OK, "not ended by the shutdown");
         return Outcome{};
       })) {
    INFO(outcome.message);
    CHECK(outcome.ok());
  }
}

TEST_CASE("a killed rank ends every tensor in flight with an error that names it", "[runtime][multiproc]") {
  const char* memory = GENERATE("0", "1");
  const auto outcomes = run_ranks(with(on_one_host(3), "RUNJOB_SHARED_MEMORY", memory), [](int rank) {
    check(runjob_init());
    std::vector<Tensor> tensors = make_tensors(rank);
    const auto require_loss = [](runjob_code code) {
      const std::string text = runjob_error_message();
      require(code == RUNJOB_PEER_LOST && text.find("rank 1 on alpha is gone") != std::string::npos, text);
    };
    for (Tensor& tensor : tensors) {
      if (rank == 1 && tensor.number == kTensors / 2) ::kill(::getpid(), SIGKILL);
      const runjob_code code = tensor.try_to_start();
      if (code == RUNJOB_OK) continue;
      require_loss(code);  // the job has ended already
      break;
    }
    for (const Tensor& tensor : tensors) {
      if (tensor.handle == 0) continue;
      const runjob_code code = runjob_wait(tensor.handle, -1);
      if (tensor.number >= kTensors / 2 || code != RUNJOB_OK) require_loss(code);
    }
    return Outcome{};
  });
  for (const std::size_t rank : {0u, 2u}) {
    INFO(outcomes[rank].message);
    CHECK(outcomes[rank].ok());
  }
}

TEST_CASE("zeros of a rank that has joined take part in fused allreduces", "[runtime][multiproc]") {
  const char* memory = GENERATE("0", "1");
  run_members(with(on_one_host(2), "RUNJOB_SHARED_MEMORY", memory), [](int rank) {
    if (rank == 1) {
      constexpr int kOfMany = 200;
      std::vector<std::vector<float>> values(kOfMany, std::vector<float>(9, 3));
      std::vector<runjob_handle> handles;
      for (int i = 0; i < kOfMany; ++i)
        handles.push_back(start_allreduce("j" + std::to_string(i), values[static_cast<std::size_t>(i)],
                                          values[static_cast<std::size_t>(i)], RUNJOB_FLOAT32));
      for (const runjob_handle handle : handles) require(finish(handle) == RUNJOB_OK, "allreduce");
      for (const auto& each : values) require(each == std::vector<float>(9, 3), "sum");
    }
    runjob_handle handle = 0;
    check(runjob_join(-1, &handle));
    runjob_release(handle);
  });
}
