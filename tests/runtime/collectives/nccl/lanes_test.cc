#include <cstdlib>
#include <functional>
#include <memory>

#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"
#include "tests/runtime/collectives/nccl/steps.hpp"

/// Collectives that run on several streams in turn.

using namespace runjob::runtime;

namespace {

/// Seconds after which a rank that waits for what does not happen is killed.
constexpr unsigned kMostSeconds = 60;

void enqueue(const UserStream& stream, std::function<void()> work) {
  const cuda::CurrentGpu current(stream.gpu());
  const auto run = [](void* context) {
    const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(context));
    (*own)();
  };
  stand_in_gpu().enqueue(stream.get(), run, new std::function<void()>(std::move(work)));
}

/// A sum in place that is launched. It begins after what the stream has to do before.
class LaunchedSum {
 public:
  LaunchedSum(const UserStream& stream, const std::string& name) : tensor_(stream, {1, 2}) {
    handle_ = launched(stream, tensor_, name.c_str());
  }
  void require_sum(float ranks) {
    check(finish(handle_));
    require(tensor_.values() == Floats{ranks, 2 * ranks}, "the sum");
  }

 private:
  const GpuTensor<float> tensor_;
  runjob_handle handle_ = 0;
};

/// An allgather that is launched, with its result in memory of the runtime.
runjob_handle start_gather(const UserStream& stream, const GpuTensor<float>& own, const char* name) {
  const auto extent = static_cast<std::int64_t>(own.bytes() / sizeof(float));
  const runjob_tensor tensor{own.get(), nullptr, 0, &extent, 1, RUNJOB_FLOAT32};
  const runjob_handle handle = start(gpu_operation(name, RUNJOB_ALLGATHER, tensor, stream));
  check(runjob_wait_on_stream(handle, stream.get(), -1));
  return handle;
}

Floats result_of(const UserStream& stream, runjob_handle handle) {
  const void* data = nullptr;
  const std::int64_t* shape = nullptr;
  std::int32_t ndim = 0;
  check(runjob_output(handle, &data, &shape, &ndim));
  return GpuTensor<float>::read(stream, data, static_cast<std::size_t>(*shape));
}

/// The log of a rank that computes on its GPU, and then in a process set of its own where there are some.
std::string log_of(int rank, bool has_sets) {
  const CapturedErrors errors;
  for (int turn = 0; turn < 3; ++turn) check(sum_of_ones(rank, "x"));
  if (has_sets) {
    const std::int32_t members[] = {0, 1};
    std::int32_t sets[] = {0, 0};
    for (const std::int32_t member : members) check(runjob_process_set_add(&member, 1, &sets[member]));
    const UserStream stream(rank);
    const std::int64_t extent = 2;
    const GpuTensor<float> tensor(stream, {1, 1});
    const runjob_tensor one = described(tensor, tensor, extent);
    runjob_operation operation = gpu_operation("y", RUNJOB_ALLREDUCE, one, stream);
    operation.process_set = sets[rank];
    run_on(stream, operation);
  }
  return errors.text();
}

}  // namespace

TEST_CASE("operations on several streams are in progress at once, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  Steps steps;
  on_ranks(on_streams(2, "2"), [&](int rank) {
    ::alarm(kMostSeconds);
    const UserStream first(rank), second(rank);
    if (rank == 1) enqueue(first, [&] { steps.wait_for(1); });
    LaunchedSum one(first, "one"), other(second, "other");
    if (rank == 0) {
      while (stand_in_gpu().kernels(0) < 2) ::usleep(500);  // neither can end before rank 1 begins the first one
      steps.reach();
    }
    one.require_sum(2);
    other.require_sum(2);
  });
}

TEST_CASE("ranks whose inputs are ready in different orders do not block each other, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  constexpr int kSize = 4;
  const std::string streams = GENERATE("2", "4");
  on_ranks(on_streams(kSize, streams, {{"RUNJOB_STAND_IN_KERNELS", "1"}}), [](int rank) {
    ::alarm(kMostSeconds);
    constexpr int kOperations = 4;
    std::vector<std::unique_ptr<UserStream>> own;
    for (int i = 0; i < kOperations; ++i) own.push_back(std::make_unique<UserStream>(rank));
    for (int turn = 0; turn < 5; ++turn) {
      std::vector<std::unique_ptr<LaunchedSum>> sums;
      for (int i = 0; i < kOperations; ++i) {
        const UserStream& stream = *own[static_cast<std::size_t>(i)];
        const auto delay = static_cast<useconds_t>(5000 * ((i + rank) % kOperations));
        enqueue(stream, [delay] { ::usleep(delay); });
        sums.push_back(std::make_unique<LaunchedSum>(stream, std::to_string(i)));
      }
      for (auto& sum : sums) sum->require_sum(kSize);
    }
  });
}

TEST_CASE("the number of streams is rank 0's, and the streams serve the next job, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  RankOptions options = on_streams(3, "1");
  options.environment["RUNJOB_STAND_IN_COUNT"] = "ncclGetUniqueId,ncclCommInitRank,ncclCommDestroy,stream_create";
  require_success(run_ranks(options, [](int rank) {
    constexpr const char* kStreams[] = {"3", "1", "8"};
    ::setenv("RUNJOB_NUM_NCCL_STREAMS", kStreams[rank], 1);
    int streams = 0;
    for (int job = 1; job <= 2; ++job) {
      check(runjob_init());
      check(sum_of_ones(rank, "x"));
      check(runjob_shutdown());
      require(calls_of("ncclGetUniqueId") == (rank == 0 ? 3 * job : 0), "the ids");
      require(calls_of("ncclCommInitRank") == 3 * job, "the communicators");
      require(calls_of("ncclCommDestroy") == 3 * job, "their end");
      if (job == 1) streams = calls_of("stream_create");
    }
    require(calls_of("stream_create") == streams, "the second job makes no stream");
    return Outcome();
  }));
}

TEST_CASE("there is one stream, and one warning with the reason, where NCCL does not keep the order of several",
          "[runtime][multiproc][stand-in]") {
  RankOptions options = on_streams(2, "4");
  options.environment["RUNJOB_STAND_IN_COUNT"] = "ncclGetUniqueId,ncclCommInitRank";
  std::string reason;
  int communicators = 1, ids = 1;
  bool has_variable = true;
  SECTION("an old NCCL") {
    options.environment["RUNJOB_STAND_IN_NCCL"] = "22505";
    reason = "NCCL keeps the order of several streams from 2.26.0 on";
  }
  SECTION("a rank without the variable") {
    has_variable = false;
    ids = 4;
    reason = "rank 1 does not have NCCL_LAUNCH_ORDER_IMPLICIT=1";
  }
  SECTION("process sets") {
    options.environment["RUNJOB_DYNAMIC_PROCESS_SETS"] = "1";
    communicators = ids = 2;
    reason = "a job with process sets needs one order of all operations on a GPU";
  }
  on_ranks(options, [&](int rank) {
    if (!has_variable && rank == 1) ::unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    const std::string log = log_of(rank, communicators == 2);
    require(calls_of("ncclCommInitRank") == communicators, "one communicator of each set");
    if (rank == 1) return;
    require(calls_of("ncclGetUniqueId") == ids, "the ids");
    const std::string text = "collectives on GPUs run on one stream, although --num-nccl-streams is 4: ";
    require_text(log, text);
    require_text(log, reason);
    require(log.find(text) == log.rfind(text), "it is logged once");
  });
}

TEST_CASE("a kernel that hangs on one stream ends the operations on all, and init() works again, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  const std::string version = GENERATE("22700", "22809");  // without and with ncclCommRevoke()
  const std::string room = GENERATE("1", "64");
  on_ranks(on_streams(2, "3",
                      {{"RUNJOB_STAND_IN_NCCL", version},
                       {"RUNJOB_STAND_IN_KERNELS", room},
                       {"RUNJOB_STALL_CHECK_TIME_SECONDS", "0"},
                       {"RUNJOB_STALL_SHUTDOWN_TIME_SECONDS", "1"}}),
           [](int rank) {
             if (rank == 0) ::setenv("RUNJOB_STAND_IN_HANG", "kernel:3", 1);
             for (int turn = 0; turn < 2; ++turn) check(sum_of_ones(rank, "x"));
             {
               const UserStream first(rank), second(rank), third(rank);
               const GpuTensor<float> hanging(first, {1, 1}), behind(second, {1, 1}), last(third, {1, 1});
               const runjob_handle handles[] = {launched(first, hanging, "hanging"), launched(second, behind, "behind"),
                                                launched(third, last, "last")};
               require(runjob_wait(handles[0], -1) != RUNJOB_OK, "it has failed");
               for (const runjob_handle handle : handles) static_cast<void>(finish(handle));
             }
             begin_again(rank);
           });
}

TEST_CASE("memory that was freed while a stream writes to it is written by another one later, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(on_streams(2, "2"), [](int rank) {
    constexpr std::size_t kLarge = 500'000, kSmall = 270'000;  // their results need blocks of one size
    const UserStream first(rank), second(rank);
    const GpuTensor<float> large(first, Floats(kLarge, -1)), small(second, Floats(kSmall, static_cast<float>(rank)));
    Floats expected(kSmall, 0);
    expected.resize(2 * kSmall, 1);
    for (int turn = 0; turn < 10; ++turn) {
      runjob_release(start_gather(first, large, "large"));
      const runjob_handle handle = start_gather(second, small, "small");
      check(runjob_check(-1));
      require(result_of(second, handle) == expected, "the result in memory that was freed");
      runjob_release(handle);
    }
  });
}
