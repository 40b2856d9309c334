#include <cstring>
#include <dlfcn.h>
#include <runjob/gpu.hpp>

#include "runtime/collectives/cuda/driver_abi.hpp"
#include "tests/catch.hpp"
#include "tests/gpu_stand_in/stand_in.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/rank_processes.hpp"

/// The runtime's own headers have another runjob::Error than the public ones, so this test calls CUDA by itself.

using namespace runjob::runtime;

namespace {

using Floats = std::vector<float>;

template <class Function>
Function* driver_function(const char* name) {
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  void* const function = ::dlsym(driver, name);
  require(function != nullptr, name);
  return reinterpret_cast<Function*>(function);
}

/// Makes a GPU's context current for the rest of the thread's life.
void use_gpu(int ordinal) {
  cuda::Context context = nullptr;
  driver_function<int(unsigned)>("cuInit")(0);
  driver_function<int(cuda::Context*, int)>("cuDevicePrimaryCtxRetain")(&context, ordinal);
  driver_function<int(cuda::Context)>("cuCtxPushCurrent_v2")(context);
}

/// What lies at an address of the GPU once the default stream is done.
Floats read(const float* from, std::size_t count) {
  driver_function<int(void*)>("cuStreamSynchronize")(nullptr);
  const auto* const view = static_cast<const float*>(
      driver_function<const runjob_stand_in_gpu*()>("runjob_stand_in")()->view(from, count * sizeof(float)));
  return {view, view + count};
}

/// Floats in the GPU's memory, for as long as the process lives.
std::span<float> on_gpu(const Floats& values) {
  cuda::Address address = 0;
  driver_function<int(cuda::Address*, std::size_t)>("cuMemAlloc_v2")(&address, values.size() * sizeof(float));
  auto* const memory = reinterpret_cast<float*>(address);
  void* const view =
      driver_function<const runjob_stand_in_gpu*()>("runjob_stand_in")()->view(memory, values.size() * sizeof(float));
  std::memcpy(view, values.data(), values.size() * sizeof(float));
  return {memory, values.size()};
}

Floats values_of(std::span<const float> tensor) {
  return read(tensor.data(), tensor.size());
}

/// The result of a gather, after the default stream has waited for it.
Floats result_of(const runjob::GatherHandle<float>& handle) {
  handle.wait_on_stream(nullptr);
  return values_of(handle.values());
}

}  // namespace

TEST_CASE("the C++ interface runs every collective on a GPU's memory, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  const auto outcomes = run_ranks(on_one_host(2), [](int rank) {
    runjob::init();
    {
      use_gpu(rank);
      const runjob::GpuCommunicator world({.device = rank, .stream = nullptr});
      const auto own = static_cast<float>(rank);
      const std::span<float> values = on_gpu(Floats(100, own + 1)), out = on_gpu(Floats(100));
      world.allreduce_async(values, "in place").wait_on_stream(nullptr);
      require(values_of(values) == Floats(100, 3), "the sum in place");
      world.allreduce_async(std::span<const float>(values), out, "apart", runjob::ReduceOp::average, {2, 1})
          .wait_on_stream(nullptr);
      require(values_of(out) == Floats(100, 6), "the average");
      const std::span<float> shared = on_gpu({own, own});
      world.broadcast_async(shared, 1, "b").wait_on_stream(nullptr);
      require(values_of(shared) == Floats{1, 1}, "the broadcast");
      const std::span<const float> part = on_gpu(Floats(static_cast<std::size_t>(2 * rank + 2), own));
      const auto gathered = world.allgather_async(part, "g", 2);
      require(gathered.shape() == std::vector<std::int64_t>{3, 2}, "the allgather's shape");
      require(result_of(gathered) == Floats{0, 0, 1, 1, 1, 1}, "the allgather");
      const std::span<const float> four = on_gpu({own, own, 10 + own, 10 + own});
      const auto exchanged = world.alltoall_async(four, "a");
      require(result_of(exchanged) == (rank == 0 ? Floats{0, 0, 1, 1} : Floats{10, 10, 11, 11}), "the alltoall");
      const std::span<float> room = on_gpu({0, 0});
      const auto scattered = world.reducescatter_async(four, "r", runjob::ReduceOp::sum, {}, 1, room);
      require(result_of(scattered) == (rank == 0 ? Floats{1, 1} : Floats{21, 21}), "the reducescatter");
      require(scattered.values().data() == room.data(), "the reducescatter's place");
      const std::int64_t extent = 2;
      const runjob_tensor tensor{shared.data(), shared.data(), 0, &extent, 1, RUNJOB_FLOAT32};
      const runjob_operation operation{
          sizeof operation,  "any", RUNJOB_ALLREDUCE, 1, &tensor, 0, RUNJOB_SUM, 1, 1, 0, 0, 0, 0, nullptr,
          RUNJOB_GPU_MEMORY, rank,  nullptr};
      const runjob::Handle any = runjob::submit(operation);
      any.wait();
      require(any.done() && values_of(shared) == Floats{2, 2}, "any operation");
    }
    runjob::shutdown();
    return Outcome();
  });
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.message);
    CHECK(outcome.ok());
  }
}

TEST_CASE("the C++ interface throws the errors of a GPU", "[runtime][multiproc][stand-in]") {
  const Outcome outcome =
      run_ranks(on_one_host(1), [](int) {
        runjob::init();
        try {
          use_gpu(0);
          const runjob::GpuCommunicator world({.device = 99, .stream = nullptr});
          world.allreduce_async(on_gpu({1}), "x").wait();
          require(false, "there is an error");
        } catch (const runjob::Error& error) {
          require(error.code() == RUNJOB_INVALID_ARGUMENT, "the code");
          require(std::string(error.what()).find("there is no GPU 99") != std::string::npos, error.what());
        }
        runjob::shutdown();
        return Outcome();
      }).front();
  INFO(outcome.message);
  CHECK(outcome.ok());
}
