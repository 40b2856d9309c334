#include <cstdlib>
#include <dlfcn.h>

#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"

/// Operations on GPUs that are refused: all ranks get an error that names the tensor, and the ranks that cannot run it.
/// The job goes on.

using namespace runjob::runtime;

namespace {

/// The text and the code of an operation's error.
std::string refusal_of(const runjob_operation& operation, runjob_code code) {
  const runjob_handle handle = start(operation);
  require(runjob_wait(handle, -1) == code, std::string("another code: ") + runjob_error_message());
  std::string text = runjob_error_message();
  runjob_release(handle);
  return text;
}

void require_job(int rank) {
  check(sum_of_ones(rank, "the job goes on"));
}

}  // namespace

TEST_CASE("what NCCL cannot express is unavailable on all ranks, with the reason, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  const int size = GENERATE(1, 3);
  on_ranks(size, [&](int rank) {
    const UserStream stream(rank);
    const std::int64_t extent = 6;
    const GpuTensor<std::int32_t> ints(stream, {1, 2, 3, 4, 5, 6});
    const auto refusal = [&](runjob_kind kind, runjob_dtype dtype, auto change) {
      const runjob_tensor tensor{ints.get(), ints.get(), 24, &extent, 1, dtype};
      runjob_operation operation = gpu_operation("x", kind, tensor, stream);
      change(operation);
      return refusal_of(operation, RUNJOB_UNAVAILABLE);
    };
    for (int turn = 0; turn < 3; ++turn) {  // from the second one on the ranks know the operation
      require_text(refusal(RUNJOB_ALLREDUCE, RUNJOB_INT16, [](auto&) {}),
                   "allreduce 'x': NCCL cannot reduce int16 values; convert them to int32 on the GPU");
      require_text(refusal(RUNJOB_REDUCESCATTER, RUNJOB_UINT16, [](auto& each) { each.op = RUNJOB_MAX; }),
                   "reducescatter 'x': NCCL cannot reduce uint16 values");
      require_text(refusal(RUNJOB_ALLREDUCE, RUNJOB_INT32, [](auto& each) { each.op = RUNJOB_AVERAGE; }),
                   "sum them, and divide the sum on the GPU");
      require_text(refusal(RUNJOB_ALLREDUCE, RUNJOB_FLOAT32, [](auto& each) { each.postscale = 3; }),
                   "NCCL can only multiply the inputs of sums and averages of floats (prescale)");
      require_text(refusal(RUNJOB_ALLREDUCE, RUNJOB_FLOAT16, [](auto& each) { each.prescale = 0.1; }),
                   "NCCL multiplies float16 values by a float16 value, which cannot be 0.1");
      require_text(
          refusal(RUNJOB_ALLREDUCE, RUNJOB_FLOAT32, [](auto& each) { each.compression = RUNJOB_COMPRESSION_FLOAT16; }),
          "allreduce 'x': values in device memory cannot be compressed; convert them there");
    }
    require(ints.values() == std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}, "nothing was written");
    require_job(rank);
  });
}

TEST_CASE("a group with a tensor that NCCL cannot express is refused as a whole, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    const UserStream stream(rank);
    const std::int64_t two = 2;
    const GpuTensor<float> floats(stream, {1, 2});
    const GpuTensor<std::int16_t> shorts(stream, {3, 4});
    const runjob_tensor tensors[] = {described(floats, floats, two),
                                     {shorts.get(), shorts.get(), 0, &two, 1, RUNJOB_INT16}};
    runjob_operation group = gpu_operation("g", RUNJOB_ALLREDUCE, tensors[0], stream);
    group.tensors = tensors;
    group.count = 2;
    require_text(refusal_of(group, RUNJOB_UNAVAILABLE), "allreduce 'g': g_2of2: NCCL cannot reduce int16 values");
    require(floats.values() == Floats{1, 2}, "nothing was written");
    require_job(rank);
  });
}

TEST_CASE("Adasum is refused on all ranks with the remedy, over the stand-ins", "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    const UserStream stream(rank);
    const std::int64_t two = 2;
    const GpuTensor<float> floats(stream, {1, 2});
    const runjob_tensor tensor = described(floats, floats, two);
    runjob_operation operation = gpu_operation("x", RUNJOB_ALLREDUCE, tensor, stream);
    operation.op = RUNJOB_ADASUM;
    require_text(refusal_of(operation, RUNJOB_UNAVAILABLE),
                 "the library has no Adasum of values in device memory; copy them to the host's memory");
    require_job(rank);
  });
}

TEST_CASE("a rank that has joined refuses what the others refuse, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    if (rank == 0) {
      const UserStream stream(0);
      const std::int64_t two = 2;
      const GpuTensor<std::int16_t> shorts(stream, {3, 4});
      const runjob_tensor tensor{shorts.get(), shorts.get(), 0, &two, 1, RUNJOB_INT16};
      const runjob_operation operation = gpu_operation("x", RUNJOB_ALLREDUCE, tensor, stream);
      require_text(refusal_of(operation, RUNJOB_UNAVAILABLE), "NCCL cannot reduce int16 values");
    }
    runjob_handle handle = 0;
    check(runjob_join(-1, &handle));
    runjob_release(handle);
    require_job(rank);
  });
}

TEST_CASE("ranks that ask for what NCCL can express and for what it cannot disagree, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    const UserStream stream(rank);
    const std::int64_t two = 2;
    const GpuTensor<float> tensor(stream, {1, 2});
    const runjob_tensor one = described(tensor, tensor, two);
    runjob_operation operation = gpu_operation("x", RUNJOB_ALLREDUCE, one, stream);
    if (rank == 1) operation.postscale = 3;
    require_text(refusal_of(operation, RUNJOB_MISMATCH), "disagree on the scaling");
    operation.postscale = 1;
    if (rank == 0) operation.compression = RUNJOB_COMPRESSION_BFLOAT16;
    require_text(refusal_of(operation, RUNJOB_MISMATCH), "disagree on the compression");
    require_job(rank);
  });
}

TEST_CASE("where tensors go through the host, all reductions are possible, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2,
           [](int rank) {
             const UserStream stream(rank);
             const std::int64_t two = 2;
             const GpuTensor<std::int16_t> shorts(stream, {3, static_cast<std::int16_t>(rank)});
             const runjob_tensor tensor{shorts.get(), shorts.get(), 0, &two, 1, RUNJOB_INT16};
             runjob_operation operation = gpu_operation("x", RUNJOB_ALLREDUCE, tensor, stream);
             operation.postscale = 3;
             run_on(stream, operation);
             require(shorts.values() == std::vector<std::int16_t>{18, 3}, "the sum, three times");
           },
           {{"RUNJOB_NCCL_LIBRARY", "/nowhere/libnccl.so"}});
}

TEST_CASE("a buffer that is not the GPU's is refused on all ranks, with tensor, address and rank, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(3, [](int rank) {
    const UserStream stream(rank), other(7);
    const std::int64_t extent = 2;
    const GpuTensor<float> own(stream, {1, 2}), second(stream, {1, 2}), foreign(other, {1, 2});
    Floats of_host{1, 2};
    void* freed = nullptr;
    {
      const GpuTensor<float> gone(stream, {1, 2});
      freed = gone.get();
    }
    const auto refusal = [&](const void* in, void* out) {
      const bool is_wrong = rank == 1;
      const runjob_tensor tensor{is_wrong ? in : own.get(), is_wrong ? out : own.get(), 0, &extent, 1, RUNJOB_FLOAT32};
      return refusal_of(gpu_operation("x", RUNJOB_ALLREDUCE, tensor, stream), RUNJOB_INVALID_ARGUMENT);
    };
    for (int turn = 0; turn < 2; ++turn) {
      require_text(refusal(of_host.data(), of_host.data()), "allreduce 'x': rank 1 on alpha cannot run it: 0x");
      require_text(refusal(of_host.data(), of_host.data()),
                   " is no memory of a GPU: it is the host's, or has been freed");
      require_text(refusal(own.get(), freed), " is no memory of a GPU: it is the host's, or has been freed");
      require_text(refusal(own.get(), foreign.get()), " lies on GPU 7, and the operation is for GPU 1");
      run_on(stream, gpu_operation("x", RUNJOB_ALLREDUCE, described(own, own, extent), stream));
    }
    const runjob_tensor tensors[] = {described(own, own, extent),
                                     {second.get(), rank == 2 ? freed : second.get(), 0, &extent, 1, RUNJOB_FLOAT32}};
    runjob_operation group = gpu_operation("g", RUNJOB_ALLREDUCE, tensors[0], stream);
    group.tensors = tensors;
    group.count = 2;
    require_text(refusal_of(group, RUNJOB_INVALID_ARGUMENT),
                 "allreduce 'g': rank 2 on alpha cannot run it: g_2of2: 0x");
    require_job(rank);
  });
}

TEST_CASE("every rank that cannot run an operation is named with its reason, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(6, [](int rank) {
    const UserStream stream(rank);
    const std::int64_t extent = 2;
    const GpuTensor<float> tensor(stream, {1, 1});
    const runjob_tensor one = described(tensor, tensor, extent);
    runjob_operation operation = gpu_operation("x", RUNJOB_ALLREDUCE, one, stream);
    if (rank > 0) operation.device = 99;
    const std::string text = refusal_of(operation, RUNJOB_INVALID_ARGUMENT);
    require_text(text, "allreduce 'x': rank 1 on alpha cannot run it: there is no GPU 99: this process has 8");
    require_text(text, "; rank 4 on alpha cannot run it: there is no GPU 99");
    require_text(text, "; and 1 more ranks");
    require_job(rank);
    operation.device = (rank + 1) % 6;
    require_text(refusal_of(operation, RUNJOB_UNAVAILABLE),
                 std::string("rank 0 on alpha cannot run it: the tensor is on GPU 1, but this rank has used ") +
                     stand_in::kFirstGpu);
    require_job(rank);
  });
}

TEST_CASE("a stream that is being captured refuses an operation on all ranks, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    const UserStream stream(rank);
    const std::int64_t extent = 2;
    const GpuTensor<float> tensor(stream, {1, 1});
    const runjob_tensor one = described(tensor, tensor, extent);
    const runjob_operation operation = gpu_operation("x", RUNJOB_ALLREDUCE, one, stream);
    void* const driver = ::dlopen(stand_in::kDriverFile, RTLD_NOW);
    const auto set_capturing = reinterpret_cast<void (*)(void*, int)>(::dlsym(driver, "runjob_stand_in_set_capturing"));
    if (rank == 0) set_capturing(stream.get(), 1);
    require_text(refusal_of(operation, RUNJOB_INVALID_ARGUMENT),
                 std::string("rank 0 on alpha cannot run it: the stream is being captured into a ") +
                     stand_in::kPlatform + " graph");
    set_capturing(stream.get(), 0);
    run_on(stream, operation);
    runjob_operation small = operation;
    small.size = 8;
    require_text(failure_of([&] { start(small); }), "whose `size` is its size");
  });
}

TEST_CASE("a driver that is too old or has no GPU on one rank is an error on all, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  const bool is_old = GENERATE(false, true);
  const auto submitted = [&](int rank) {
    if (rank == 1)
      is_old ? ::setenv("RUNJOB_STAND_IN_DRIVER", stand_in::kOldDriver, 1) : ::setenv("RUNJOB_STAND_IN_GPUS", "0", 1);
    float value = 1;
    const std::int64_t extent = 1;
    const runjob_tensor tensor{&value, &value, 0, &extent, 1, RUNJOB_FLOAT32};
    runjob_operation operation{
        sizeof operation,  "x", RUNJOB_ALLREDUCE, 1, &tensor, 0, RUNJOB_SUM, 1, 1, 0, 0, 0, 0, nullptr,
        RUNJOB_GPU_MEMORY, 0,   nullptr};
    const runjob_handle handle = start(operation);
    require(runjob_wait(handle, -1) != RUNJOB_OK, "it has failed");
    const std::string text = runjob_error_message();
    runjob_release(handle);
    require_text(text, "allreduce 'x': rank 0 on alpha cannot run it: 0x");
    require_text(text, "; rank 1 on alpha cannot run it: it has no backend for float32 values in device memory: ");
    require_text(text, is_old ? stand_in::kOldDriverText : stand_in::kNoGpu);
    check(small_allreduce("y"));
  };
  on_ranks(2, submitted);
}

TEST_CASE("an NCCL that has no GPU is named with its version and file, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(1,
           [](int) {
             const std::string backends = runjob_backends_json();
             require_text(backends, R"("reason":"NCCL 2.28.9 ()");
             require_text(backends, std::string("/") + stand_in::kLibraryFile + ") has no GPU: ");
             require_text(backends, std::string("/") + stand_in::kDriverFile + ": " + stand_in::kNoGpu);
           },
           {{"RUNJOB_STAND_IN_GPUS", "0"}});
}

TEST_CASE("a GPU that is lost before an operation is submitted is an error on all ranks, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    if (rank == 0) {
      ::setenv("RUNJOB_STAND_IN_FAIL", "event_record:3", 1);
      ::setenv("RUNJOB_STAND_IN_ERROR", std::to_string(stand_in::kLostError).c_str(), 1);
    }
    check(sum_of_ones(rank, "x"));
    const std::string text = failure_of([&] { check(sum_of_ones(rank, "y")); });
    require_text(text, std::string("allreduce 'y': rank 0 on alpha cannot run it: ") + stand_in::kFirstGpu);
    require_text(
        text, std::string(stand_in::kLostName) + "); after this error the GPU is lost to the process, which must end");
  });
}
