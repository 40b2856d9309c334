#include "runtime/collectives/nccl/nccl_backend.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <numeric>
#include <optional>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/gpu_stand_in/stand_in.hpp"
#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"
#include "tests/runtime/gpu_tensors.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

/// The host's collectives of one rank: it gets back what it gives.
class LoneHost : public DataBackend {
 public:
  std::string address() const override { return {}; }
  Status connect(const std::vector<std::string>&) override { return {}; }
  Status run(const Call& call) override {
    std::memcpy(call.output, call.input, call.count);
    return {};
  }
  void abort(const Status&) override {}
};

}  // namespace

TEST_CASE("a job without a tensor on a GPU opens neither the driver nor NCCL", "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    const auto is_open = [](const char* file) { return ::dlopen(file, RTLD_NOW | RTLD_NOLOAD) != nullptr; };
    check(small_allreduce("x"));
    require(!is_open(stand_in::kDriverFile) && !is_open(stand_in::kLibraryFile), "before a tensor on a GPU");
    check(sum_of_ones(rank, "y"));
    require(is_open(stand_in::kDriverFile) && is_open(stand_in::kLibraryFile), "with one");
  });
}

TEST_CASE("tensors are summed where they lie, over the stand-ins", "[runtime][multiproc][stand-in]") {
  const int size = GENERATE(1, 2, 3, 4, 8);
  on_ranks(size, [&](int rank) {
    const UserStream stream(rank);
    const std::int64_t extent = 3;
    for (int turn = 0; turn < 4; ++turn) {
      const GpuTensor<float> tensor(stream, {1, static_cast<float>(rank), static_cast<float>(turn)});
      const runjob_tensor one = described(tensor, tensor, extent);
      run_on(stream, gpu_operation("x", RUNJOB_ALLREDUCE, one, stream));
      const auto ranks = static_cast<float>(size);
      require(tensor.values() == Floats{ranks, ranks * (ranks - 1) / 2, ranks * static_cast<float>(turn)}, "the sum");
    }
  });
}

TEST_CASE("an operation leaves the caller's GPU current, over the stand-ins", "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    const int other = rank + 2;
    const cuda::CurrentGpu current(cuda::Gpu::of(other));
    check(sum_of_ones(rank, "x"));
    require(stand_in_gpu().current() == other, "the caller's GPU");
  });
}

TEST_CASE("all collectives on GPUs, with parts of different sizes, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  constexpr int kSize = 3;
  on_ranks(kSize, [&](int rank) {
    const UserStream stream(rank);
    const auto own = static_cast<float>(rank);
    for (int turn = 0; turn < 3; ++turn) {
      const std::int64_t four = 4, rows = rank + 1, five = 5;
      const GpuTensor<float> buffer(stream, {own, own, own, own});
      runjob_tensor tensor = described(buffer, buffer, four);
      runjob_operation operation = gpu_operation("broadcast", RUNJOB_BROADCAST, tensor, stream);
      operation.root = 2;
      run_on(stream, operation);
      require(buffer.values() == Floats(4, 2), "the broadcast");

      const GpuTensor<float> part(stream, Floats(static_cast<std::size_t>(rows), own)), all(stream, Floats(6));
      tensor = described(part, all, rows);
      run_on(stream, gpu_operation("gather", RUNJOB_ALLGATHER, tensor, stream));
      require(all.values() == Floats{0, 1, 1, 2, 2, 2}, "the allgather of unequal parts");

      const GpuTensor<float> one(stream, {own}), three(stream, Floats(3));
      const std::int64_t single = 1;
      tensor = described(one, three, single);
      run_on(stream, gpu_operation("gather equal", RUNJOB_ALLGATHER, tensor, stream));
      require(three.values() == Floats{0, 1, 2}, "the allgather of equal parts");

      const GpuTensor<float> five_values(stream, {1, 2, 3, 4, 5 + own}), scattered(stream, Floats(rank < 2 ? 2 : 1));
      tensor = described(five_values, scattered, five);
      run_on(stream, gpu_operation("scatter", RUNJOB_REDUCESCATTER, tensor, stream));
      const std::vector<Floats> sums{{3, 6}, {9, 12}, {18}};
      require(scattered.values() == sums[static_cast<std::size_t>(rank)], "the reducescatter");

      const std::int64_t splits[] = {1, 0, 3};
      const GpuTensor<float> sent(stream, {own, 10 + own, 11 + own, 12 + own}), received(stream, Floats(9));
      tensor = described(sent, received, four);
      operation = gpu_operation("exchange", RUNJOB_ALLTOALL, tensor, stream);
      operation.splits = splits;
      operation.nsplits = 3;
      const runjob_handle handle = start(operation);
      check(runjob_wait(handle, -1));
      const void* data = nullptr;
      const std::int64_t* shape = nullptr;
      std::int32_t ndim = 0;
      check(runjob_output(handle, &data, &shape, &ndim));
      const std::vector<Floats> exchanged{{0, 1, 2}, {}, {10, 11, 12, 11, 12, 13, 12, 13, 14}};
      const Floats found = GpuTensor<float>::read(stream, data, static_cast<std::size_t>(*shape));
      require(found == exchanged[static_cast<std::size_t>(rank)], "the alltoall");
      runjob_release(handle);
    }
  });
}

TEST_CASE("reductions of GPU tensors that NCCL can express, over the stand-ins", "[runtime][multiproc][stand-in]") {
  on_ranks(2, [&](int rank) {
    const UserStream stream(rank);
    const std::int64_t extent = 2;
    const auto result = [&](runjob_reduce_op op, double prescale, double postscale) {
      const GpuTensor<float> in(stream, {2, 3.0f + static_cast<float>(rank)}), out(stream, Floats(2));
      const runjob_tensor tensor = described(in, out, extent);
      runjob_operation operation = gpu_operation("r", RUNJOB_ALLREDUCE, tensor, stream);
      operation.op = op;
      operation.prescale = prescale;
      operation.postscale = postscale;
      run_on(stream, operation);
      return out.values();
    };
    require(result(RUNJOB_AVERAGE, 1, 1) == Floats{2, 3.5}, "the average");
    require(result(RUNJOB_SUM, 0.5, 1) == Floats{2, 3.5}, "a sum with a prescale");
    require(result(RUNJOB_SUM, 1, 0.5) == Floats{2, 3.5}, "a sum with a postscale");
    require(result(RUNJOB_MAX, 1, 1) == Floats{2, 4}, "the maximum");
    require(result(RUNJOB_PRODUCT, 1, 1) == Floats{4, 12}, "the product");
    require(result(RUNJOB_AVERAGE, 0.5, 2) == Floats{2, 3.5}, "an average with both");
    const GpuTensor<std::int16_t> shorts(stream, {1, static_cast<std::int16_t>(-rank)});
    const runjob_tensor tensor{shorts.get(), shorts.get(), 0, &extent, 1, RUNJOB_INT16};
    runjob_operation moved = gpu_operation("shorts", RUNJOB_BROADCAST, tensor, stream);
    moved.root = 1;
    run_on(stream, moved);
    require(shorts.values() == std::vector<std::int16_t>{1, -1}, "the broadcast of int16");
    const GpuTensor<unsigned char> bools(stream, {0, static_cast<unsigned char>(rank)});
    const runjob_tensor flags{bools.get(), bools.get(), 0, &extent, 1, RUNJOB_BOOL};
    run_on(stream, gpu_operation("bools", RUNJOB_ALLREDUCE, flags, stream));
    require(bools.values() == std::vector<unsigned char>{0, 1}, "the sum of bools");
  });
}

TEST_CASE("every element of one rank's reductions is averaged and multiplied, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  const std::int64_t extent = GENERATE(1, 4096, 4097, 8198, 131072, 1000067);
  on_ranks(1, [&](int) {
    const UserStream stream(0);
    const auto count = static_cast<std::size_t>(extent);
    for (const runjob_kind kind : {RUNJOB_ALLREDUCE, RUNJOB_REDUCESCATTER}) {
      for (const auto& [op, factor] :
           {std::pair(RUNJOB_SUM, 0.5), std::pair(RUNJOB_AVERAGE, 2.0), std::pair(RUNJOB_AVERAGE, 1.0)}) {
        const GpuTensor<float> in(stream, Floats(count, 3)), out(stream, Floats(count));
        const runjob_tensor tensor = described(in, out, extent);
        runjob_operation operation = gpu_operation("r", kind, tensor, stream);
        operation.op = op;
        operation.prescale = factor;
        run_on(stream, operation);
        require(out.values() == Floats(count, 3 * static_cast<float>(factor)), "all elements");
      }
    }
    const GpuTensor<float> first(stream, Floats(count, 3)), second(stream, Floats(count, 5));
    const runjob_tensor tensors[] = {described(first, first, extent), described(second, second, extent)};
    runjob_operation group = gpu_operation("group", RUNJOB_ALLREDUCE, tensors[0], stream);
    group.tensors = tensors;
    group.count = 2;
    group.is_group = 1;
    group.postscale = 0.5;
    run_on(stream, group);
    require(first.values() == Floats(count, 1.5) && second.values() == Floats(count, 2.5), "a group");
  });
}

TEST_CASE("an operation on a GPU takes the work before it, and the work after it waits, on three streams",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2,
           [&](int rank) {
             const UserStream first(rank), second(rank), third(rank);
             const std::int64_t extent = 1000;
             for (int turn = 0; turn < 20; ++turn) {
               const GpuTensor<float> in(first, Floats(1000, static_cast<float>(turn + rank)));
               const GpuTensor<float> out(first, Floats(1000));
               const runjob_tensor tensor = described(in, out, extent);
               const runjob_handle handle = start(gpu_operation("x", RUNJOB_ALLREDUCE, tensor, first));
               check(runjob_wait_on_stream(handle, second.get(), -1));
               check(runjob_wait_on_stream(handle, third.get(), -1));
               require(
                   GpuTensor<float>::read(second, out.get(), 1000) == Floats(1000, static_cast<float>(2 * turn + 1)),
                   "as the second stream sees it");
               require(GpuTensor<float>::read(third, out.get(), 1000) == Floats(1000, static_cast<float>(2 * turn + 1)),
                       "as the third stream sees it");
               runjob_release(handle);
             }
           },
           {{"RUNJOB_STAND_IN_DELAY_US", "2000"}});
}

TEST_CASE("a group of tensors and results without a buffer lie on the GPU", "[runtime][multiproc][stand-in]") {
  on_ranks(2, [&](int rank) {
    const UserStream stream(rank);
    const std::int64_t two = 2, one = 1;
    const GpuTensor<float> a(stream, {1, 2}), b(stream, {3});
    const runjob_tensor tensors[] = {described(a, a, two), described(b, b, one)};
    runjob_operation group = gpu_operation("group", RUNJOB_ALLREDUCE, tensors[0], stream);
    group.count = 2;
    run_on(stream, group);
    require(a.values() == Floats{2, 4} && b.values() == Floats{6}, "the group");
    for (int turn = 0; turn < 3; ++turn) {
      const GpuTensor<float> own(stream, {static_cast<float>(rank)});
      const runjob_tensor tensor{own.get(), nullptr, 0, &one, 1, RUNJOB_FLOAT32};
      const runjob_handle handle = start(gpu_operation("g", RUNJOB_ALLGATHER, tensor, stream));
      check(runjob_wait(handle, -1));
      require(runjob_poll(handle) == 1, "it is done");
      const void* data = nullptr;
      const std::int64_t* shape = nullptr;
      std::int32_t ndim = 0;
      check(runjob_output(handle, &data, &shape, &ndim));
      require(GpuTensor<float>::read(stream, data, 2) == Floats{0, 1}, "the result");
      runjob_release(handle);
    }
  });
}

TEST_CASE("a group that is launched in parts is done with its last tensor, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2, [&](int rank) {
    const UserStream stream(rank);
    const std::int64_t one = 1, many = 5000;
    for (int turn = 0; turn < 50; ++turn) {
      const GpuTensor<float> floats(stream, {1});
      const GpuTensor<std::int32_t> in(stream, std::vector<std::int32_t>(5000, turn));
      const GpuTensor<std::int32_t> out(stream, std::vector<std::int32_t>(5000, -1));
      const runjob_tensor tensors[] = {described(floats, floats, one),
                                       {in.get(), out.get(), 0, &many, 1, RUNJOB_INT32}};
      runjob_operation group = gpu_operation("group", RUNJOB_ALLREDUCE, tensors[0], stream);
      group.tensors = tensors;
      group.count = 2;
      const runjob_handle handle = start(group);
      check(runjob_wait(handle, -1));
      const UserStream other(rank);
      require(GpuTensor<std::int32_t>::read(other, out.get(), 5000) == std::vector<std::int32_t>(5000, 2 * turn),
              "the last tensor's sum");
      runjob_release(handle);
    }
  });
}

TEST_CASE("a callback comes once the GPU is done, and an empty tensor needs no GPU", "[runtime][multiproc][stand-in]") {
  on_ranks(2, [&](int rank) {
    const UserStream stream(rank);
    const std::int64_t extent = 2, none = 0;
    const GpuTensor<float> tensor(stream, {1, 1});
    const runjob_tensor full = described(tensor, tensor, extent), empty{nullptr, nullptr, 0, &none, 1, RUNJOB_FLOAT32};
    const runjob_handle handle = start(gpu_operation("x", RUNJOB_ALLREDUCE, full, stream));
    static std::atomic<bool> is_called{false};
    check(runjob_on_done(
        handle, [](void*) { is_called = true; }, nullptr));
    while (!is_called) ::usleep(100);
    require(runjob_poll(handle) == 1, "it is done");
    runjob_release(handle);
    run_on(stream, gpu_operation("none", RUNJOB_ALLREDUCE, empty, stream));
  });
}

TEST_CASE("a rank that has joined gives zeros of its GPU", "[runtime][multiproc][stand-in]") {
  on_ranks(2, [&](int rank) {
    if (rank == 0) {
      const UserStream stream(0);
      const std::int64_t extent = 2;
      for (int turn = 0; turn < 20; ++turn) {
        const GpuTensor<float> tensor(stream, {4, 5});
        const runjob_tensor one = described(tensor, tensor, extent);
        run_on(stream, gpu_operation("x", RUNJOB_ALLREDUCE, one, stream));
        require(tensor.values() == Floats{4, 5}, "the sum with zeros");
      }
    }
    runjob_handle handle = 0;
    check(runjob_join(-1, &handle));
    runjob_release(handle);
  });
}

TEST_CASE("a process set has a communicator of its own", "[runtime][multiproc][stand-in]") {
  on_ranks(3,
           [&](int rank) {
             const std::int32_t members[] = {0, 2};
             std::int32_t set = 0;
             check(runjob_process_set_add(members, 2, &set));
             const UserStream stream(rank);
             const std::int64_t extent = 2;
             const GpuTensor<float> a(stream, {1, 1}), b(stream, {1, 1});
             const runjob_tensor one = described(a, a, extent), other = described(b, b, extent);
             const runjob_handle all = start(gpu_operation("all", RUNJOB_ALLREDUCE, one, stream));
             if (rank != 1) {
               runjob_operation operation = gpu_operation("some", RUNJOB_ALLREDUCE, other, stream);
               operation.process_set = set;
               run_on(stream, operation);
               require(b.values() == Floats{2, 2}, "the set's sum");
             }
             check(finish(all));
             require(a.values() == Floats{3, 3}, "the job's sum");
           },
           {{"RUNJOB_DYNAMIC_PROCESS_SETS", "1"}});
}

TEST_CASE("ranks that disagree on where a tensor lies get an error that names both", "[runtime][multiproc][stand-in]") {
  on_ranks(2, [&](int rank) {
    std::string text;
    if (rank == 0) {
      text = failure_of([] { check(sum_of_ones(0, "x")); });
    } else {
      std::vector<float> values{1, 1};
      text = failure_of([&] { check(finish(start_allreduce("x", values, values, RUNJOB_FLOAT32))); });
    }
    require_text(text, "disagree on the memory");
    check(sum_of_ones(rank, "y"));
  });
}

TEST_CASE("a failure on a GPU is an error on all ranks", "[runtime][multiproc][stand-in]") {
  const std::string failing = GENERATE("ncclAllReduce:2", "ncclCommInitRank:1", "kernel:2", "stream_wait:2");
  INFO(failing);
  const std::vector<Outcome> outcomes = outcomes_of(2, [&](int rank) {
    if (rank == 0) ::setenv("RUNJOB_STAND_IN_FAIL", failing.c_str(), 1);
    for (int turn = 0; turn < 5; ++turn) check(sum_of_ones(rank, "x"));
  });
  CHECK_THAT(outcomes[0].message, ContainsSubstring("stand-in"));
  CHECK_FALSE(outcomes[1].message.empty());
}

TEST_CASE("a GPU or an NCCL that hangs ends with the job's failure", "[runtime][multiproc][stand-in]") {
  const std::string hanging = GENERATE("ncclAllReduce:2", "ncclCommInitRank:1", "kernel:2");
  INFO(hanging);
  const std::vector<Outcome> outcomes = outcomes_of(2, [&](int rank) {
    if (rank == 0) {
      ::setenv("RUNJOB_STAND_IN_HANG", hanging.c_str(), 1);
    }
    if (rank == 1) ::alarm(3);
    for (int turn = 0; turn < 5; ++turn) check(sum_of_ones(rank, "x"));
  });
  CHECK_THAT(outcomes[0].message, ContainsSubstring("rank 1 on alpha"));
  CHECK(outcomes[1].wait_status == SIGALRM);
}

TEST_CASE("a rank that dies while the others wait for their GPUs is named", "[runtime][multiproc][stand-in]") {
  const std::vector<Outcome> outcomes = outcomes_of(3, [&](int rank) {
    if (rank == 1) ::setenv("RUNJOB_STAND_IN_HANG", "kernel:2", 1);
    check(sum_of_ones(rank, "x"));
    if (rank == 1) ::alarm(1);
    check(sum_of_ones(rank, "x"));
  });
  for (const int rank : {0, 2})
    CHECK_THAT(outcomes[static_cast<std::size_t>(rank)].message, ContainsSubstring("rank 1 on alpha"));
}

TEST_CASE("communicators that connect while the job fails are stopped, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  const auto fail_in_set_up = [] {
    ::alarm(60);
    LoneHost host;
    std::optional<nccl::NcclBackend> backend;
    DeviceOptions options;
    options.host = &host;
    options.log = [&](bool, const std::string& line) {
      if (line.find("connects 1 ranks") != line.npos) backend->abort(Status(Errc::kPeerLost, "rank 1 has left"));
    };
    backend.emplace(options, nccl::NcclSettings{});
    const UserStream stream(0);
    const GpuTensor<float> tensor(stream, {1, 1});
    Call call;
    call.kind = Kind::kAllreduce;
    call.input = call.output = tensor.get();
    call.count = 2;
    call.memory.kind = MemoryKind::kDevice;
    Call inexpressible = call;
    inexpressible.dtype = DType::kInt16;
    static_cast<void>(backend->refusal(inexpressible));  // it connects the communicator
    require(backend->run({&call, 1}).message() == "rank 1 has left", "the reason");
    while (calls_of("ncclCommAbort") == 0) ::usleep(1000);
    backend.reset();
    require(calls_of("ncclCommAbort") == 1 && calls_of("ncclCommDestroy") == 0, "it is stopped once");
    return Outcome();
  };
  const Outcome outcome = run_alone(fail_in_set_up, {{"RUNJOB_STAND_IN_COUNT", "ncclCommAbort,ncclCommDestroy"}});
  INFO(outcome.message);
  CHECK(outcome.ok());
}
