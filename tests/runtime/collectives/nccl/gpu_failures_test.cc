#include <cstdlib>

#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"

/// GPUs that fail, and runjob_check().

using namespace runjob::runtime;

TEST_CASE("a GPU that is out of memory gives the bytes asked for and those that are free, on all ranks",
          "[runtime][multiproc][stand-in]") {
  const std::vector<Outcome> outcomes = outcomes_of(2, [](int rank) {
    if (rank == 0) ::setenv("RUNJOB_STAND_IN_MIB", "1", 1);
    const UserStream stream(rank);
    const GpuTensor<float> own(stream, Floats(75u << 10));  // 300 KiB; the result is rounded up to 1 MiB
    const std::int64_t extent = 75 << 10;
    const runjob_tensor tensor{own.get(), nullptr, 0, &extent, 1, RUNJOB_FLOAT32};
    check(finish(start(gpu_operation("g", RUNJOB_ALLGATHER, tensor, stream))));
  });
  for (const Outcome& each : outcomes) {
    CHECK_THAT(each.message, ContainsSubstring(std::string("allgather 'g': ") + stand_in::kFirstGpu));
    CHECK_THAT(each.message,
               ContainsSubstring("is out of memory: 1048576 bytes were asked for, 741376 of 1048576 are free"));
  }
}

TEST_CASE("a GPU that is gone or lost to the process is an error that names it and the remedy, on all ranks",
          "[runtime][multiproc][stand-in]") {
  const std::vector<std::string> errors{std::to_string(stand_in::kGoneError), std::to_string(stand_in::kLostError)};
  const std::vector<std::string> names{
      std::string(stand_in::kGoneName) + "); the GPU is gone: see " + stand_in::kWhereToLook,
      std::string(stand_in::kLostName) + "); after this error the GPU is lost to the process, which must end"};
  const std::size_t which = GENERATE(0u, 1u);
  const std::vector<Outcome> outcomes = outcomes_of(2, [&](int rank) {
    if (rank == 0) {
      ::setenv("RUNJOB_STAND_IN_FAIL", "event_query:3", 1);
      ::setenv("RUNJOB_STAND_IN_ERROR", errors[which].c_str(), 1);
    }
    const std::string text = failure_of([&] {
      for (;;) check(sum_of_ones(rank, "x"));
    });
    static_cast<void>(small_allreduce("end"));  // ends with the job, of which the other rank learns
    throw std::runtime_error(text);
  });
  for (const Outcome& each : outcomes) {
    CHECK_THAT(each.message, ContainsSubstring(stand_in::kFirstGpu));
    CHECK_THAT(each.message, ContainsSubstring(names[which]));
  }
}

TEST_CASE("after a launch that failed, none of this rank's meets those of the other ranks",
          "[runtime][multiproc][stand-in]") {
  const std::vector<Outcome> outcomes = outcomes_of(
      2,
      [](int rank) {
        if (rank == 1) ::setenv("RUNJOB_STAND_IN_FAIL", "ncclAllReduce:2", 1);
        check(sum_of_ones(rank, "first"));
        const UserStream& stream = *new UserStream(rank);  // lasts, as the tensors: the GPU may be at work on them
        const auto& one = *new GpuTensor<float>(stream, {1, 1});
        const auto& ten = *new GpuTensor<float>(stream, {10, 10});
        const std::int64_t extent = 2;
        const runjob_handle failing = start(gpu_operation("1", RUNJOB_ALLREDUCE, described(one, one, extent), stream));
        const runjob_handle next = start(gpu_operation("2", RUNJOB_ALLREDUCE, described(ten, ten, extent), stream));
        require(runjob_wait(failing, -1) != RUNJOB_OK || one.values() == Floats{2, 2}, "the sum of other operations");
        check(runjob_wait(next, -1));
      },
      {{"RUNJOB_FUSION_THRESHOLD", "0"}, {"RUNJOB_CYCLE_TIME", "20"}});
  for (const Outcome& each : outcomes) CHECK_THAT(each.message, ContainsSubstring("the stand-in was asked to fail"));
}

TEST_CASE("runjob_check() waits for the GPU, and comes back while it is at work", "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    check(runjob_check(-1));
    if (rank == 0) ::setenv("RUNJOB_STAND_IN_HANG", "kernel:2", 1);
    const UserStream stream(rank), other(rank);
    const GpuTensor<float> a(other, {1, 1}), b(other, {1, 1});
    other.synchronize();
    const runjob_handle first = launched(stream, a, "a");
    check(runjob_check(-1));
    require(runjob_poll(first) == 1, "the GPU is done");
    runjob_release(first);
    runjob_release(launched(stream, b, "b"));
    if (rank == 0) require(runjob_check(0.05) == RUNJOB_IN_PROGRESS, "the GPU is at work");
    if (rank == 1) require(runjob_check(-1) != RUNJOB_OK, "rank 0 has left before its GPU was done");
  });
}

TEST_CASE("runjob_check() returns no error when another rank has left after all operations have ended",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    check(sum_of_ones(rank, "x"));
    if (rank == 1) return;
    require(small_allreduce("late") != RUNJOB_OK, "rank 1 has left");
    check(runjob_check(-1));
  });
}

TEST_CASE("runjob_check() returns the failure of what was launched, and every later call does too",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    if (rank == 0) ::setenv("RUNJOB_STAND_IN_FAIL", "kernel:1", 1);
    const UserStream stream(rank), other(rank);
    const GpuTensor<float> tensor(other, {1, 1});
    other.synchronize();
    runjob_release(launched(stream, tensor, "x"));
    require_text(failure_of([] { check(runjob_check(-1)); }), "a collective on the GPU: NCCL 2.28.9");
    if (rank == 0) require(small_allreduce("end") != RUNJOB_OK, "it ends with the job, of which rank 1 learns");
    require_text(failure_of([] { check(runjob_check(-1)); }), "a collective on the GPU: NCCL 2.28.9");
    require_text(failure_of([&] { check(sum_of_ones(rank, "y")); }), "NCCL 2.28.9");
  });
}

TEST_CASE("a GPU that is busy for too long is reported with its first operation, and ends the job",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2,
           [](int rank) {
             const CapturedErrors errors;
             if (rank == 0) ::setenv("RUNJOB_STAND_IN_HANG", "kernel:2", 1);
             check(sum_of_ones(rank, "first"));
             const std::string text = failure_of([&] { check(sum_of_ones(rank, "second")); });
             require_text(text, "allreduce 'second', operation 2 of 2: submitted ");
             require_text(text, "the GPU is still busy with it; --stall-check-shutdown-time-seconds");
             require_text(errors.text(), "the GPU is still busy with it");
             require_text(errors.text(), "the first operation that is not done on GPU " + std::to_string(rank));
           },
           {{"RUNJOB_STALL_CHECK_TIME_SECONDS", "1"}, {"RUNJOB_STALL_SHUTDOWN_TIME_SECONDS", "2"}});
}

TEST_CASE("an operation that another rank has not submitted is told from one whose GPU is busy",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2,
           [](int rank) {
             const CapturedErrors errors;
             check(sum_of_ones(rank, "first"));
             if (rank == 1) {
               while (runjob_check(-1) == RUNJOB_OK) ::usleep(1000);  // until the job ends
               return;
             }
             require_text(failure_of([] { check(sum_of_ones(0, "second")); }), "for rank 1 on alpha (last submitted ");
             require_text(errors.text(), "allreduce 'second' has waited");
             require_text(errors.text(), "allreduce 'second', operation 2 of 2: ");
             require_text(errors.text(), "other ranks have not submitted it");
           },
           {{"RUNJOB_STALL_CHECK_TIME_SECONDS", "1"}, {"RUNJOB_STALL_SHUTDOWN_TIME_SECONDS", "3"}});
}
