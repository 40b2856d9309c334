#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"

/// Several communicators on one GPU: the order of their launches, and their end after a failure.

using namespace runjob::runtime;
using runjob::Environment;

namespace {

constexpr const char* kDynamicSets = "RUNJOB_DYNAMIC_PROCESS_SETS";

std::int32_t add_set(const std::vector<std::int32_t>& ranks) {
  std::int32_t set = 0;
  check(runjob_process_set_add(ranks.data(), static_cast<std::int32_t>(ranks.size()), &set));
  return set;
}

/// A tensor of ones and its sum in a process set.
class Sum {
 public:
  Sum(const UserStream& stream, std::int32_t set) : stream_(stream), set_(set), tensor_(stream, {1, 1}) {}

  void start_as(const char* name) {
    tensor_of_call_ = described(tensor_, tensor_, extent_);
    runjob_operation operation = gpu_operation(name, RUNJOB_ALLREDUCE, tensor_of_call_, stream_);
    operation.process_set = set_;
    handle_ = start(operation);
  }
  runjob_code end() { return finish(handle_); }
  Floats values() const { return tensor_.values(); }

 private:
  const UserStream& stream_;
  const std::int32_t set_;
  const std::int64_t extent_ = 2;
  const GpuTensor<float> tensor_;
  runjob_tensor tensor_of_call_{};
  runjob_handle handle_ = 0;
};

}  // namespace

TEST_CASE("sets that share ranks may be used in any order where a GPU has room for one kernel, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  on_ranks(3,
           [](int rank) {
             // Each rank begins with another of the three sets, so that without an order each waits for the next one.
             const std::int32_t sets[] = {add_set({0, 1}), add_set({1, 2}), add_set({0, 2})};
             const std::int32_t own[] = {sets[rank], sets[(rank + 2) % 3], 0};
             const UserStream stream(rank);
             for (int turn = 0; turn < 15; ++turn) {
               Sum first(stream, own[turn % 3]), second(stream, own[(turn + 1) % 3]),
                   third(stream, own[(turn + 2) % 3]);
               const auto order = static_cast<std::size_t>((turn + rank) % 3);
               Sum* const sums[] = {&first, &second, &third};
               for (std::size_t i = 0; i < 3; ++i) sums[(order + i) % 3]->start_as("x");
               for (Sum* sum : sums) check(sum->end());
               Floats found;
               for (Sum* sum : sums) found.push_back(sum->values().front());
               std::sort(found.begin(), found.end());
               require(found == Floats{2, 2, 3}, "the sums");
             }
           },
           {{kDynamicSets, "1"}, {"RUNJOB_STAND_IN_KERNELS", "1"}, {"RUNJOB_STAND_IN_DELAY_US", "500"}});
}

TEST_CASE("after a failure all communicators of a GPU are stopped before one is reclaimed, and init() works again",
          "[runtime][multiproc][stand-in]") {
  const std::string version = GENERATE("22700", "22809");  // without and with ncclCommRevoke()
  on_ranks(2,
           [](int rank) {
             // The third kernel hangs and takes all the room, so that the one of the other set cannot begin.
             ::setenv("RUNJOB_STAND_IN_HANG", "kernel:3", 1);
             const std::int32_t alone = add_set({0}), both = 0;
             const UserStream stream(rank);
             check(sum_of_ones(rank, "a"));
             {
               Sum hanging(stream, both), behind(stream, rank == 0 ? alone : both);
               check(sum_of_ones(rank, "b"));
               hanging.start_as("c");
               behind.start_as("d");
               require(hanging.end() != RUNJOB_OK, "it has failed");
               static_cast<void>(behind.end());
             }
             begin_again(rank);
           },
           {{kDynamicSets, "1"},
            {"RUNJOB_STAND_IN_KERNELS", "1"},
            {"RUNJOB_STAND_IN_NCCL", version},
            {"RUNJOB_STALL_CHECK_TIME_SECONDS", "0"},
            {"RUNJOB_STALL_SHUTDOWN_TIME_SECONDS", "1"}});
}

TEST_CASE("each call of NCCL may hang when a job ends, and init() works again", "[runtime][multiproc][stand-in]") {
  const std::string hanging = GENERATE("ncclAllReduce:2", "ncclCommDestroy:1", "ncclCommAbort:1", "ncclGetUniqueId:1");
  INFO(hanging);
  RankOptions options = on_one_host(2);
  if (hanging == "ncclGetUniqueId:1") options.start_timeout_seconds = 2;
  const std::vector<Outcome> outcomes = run_ranks(options, [&](int rank) {
    check(runjob_init());
    if (rank == 0) {
      ::setenv("RUNJOB_STAND_IN_HANG", hanging.c_str(), 1);
      if (hanging == "ncclCommAbort:1") ::setenv("RUNJOB_STAND_IN_FAIL", "kernel:2", 1);
    }
    if (rank == 1 && hanging == "ncclAllReduce:2") ::setenv("RUNJOB_STAND_IN_FAIL", "kernel:2", 1);
    const CapturedErrors errors;
    bool has_failed = false;
    for (int turn = 0; turn < 3 && !has_failed; ++turn) has_failed = sum_of_ones(rank, "x") != RUNJOB_OK;
    if (has_failed) static_cast<void>(small_allreduce("end"));  // ends with the job: no rank leaves before all know
    begin_again(rank);
    if (rank == 0 && hanging == "ncclCommAbort:1")
      require_text(errors.text(), std::string("NCCL has not ended its work on ") + stand_in::kFirstGpu);
    if (rank == 0 && hanging == "ncclGetUniqueId:1") require_text(errors.text(), "NCCL has not made an id within 2 s");
    check(runjob_shutdown());
    return Outcome();
  });
  for (const Outcome& each : outcomes) {
    INFO(each.message);
    CHECK(each.ok());
  }
}

TEST_CASE("a process whose GPU is still at work for a job that has failed joins no other one",
          "[runtime][multiproc][stand-in]") {
  const std::vector<Outcome> outcomes = run_ranks(on_one_host(2), [&](int rank) {
    check(runjob_init());
    if (rank == 0) ::setenv("RUNJOB_STAND_IN_HANG", "kernel:2,ncclCommRevoke:1", 1);
    check(sum_of_ones(rank, "x"));
    if (rank == 1) ::alarm(1);
    require_text(failure_of([&] { check(sum_of_ones(rank, "y")); }), "rank 1 on alpha");
    check(runjob_shutdown());
    check(runjob_init());
    return Outcome();
  });
  CHECK(outcomes[1].wait_status == SIGALRM);
  CHECK_THAT(outcomes[0].message, ContainsSubstring("is still at work for a job that has failed"));
}
