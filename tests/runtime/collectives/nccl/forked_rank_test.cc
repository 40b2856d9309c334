#include <functional>
#include <sys/wait.h>

#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"
#include "tests/runtime/collectives/nccl/steps.hpp"

/// Ranks that fork while they use GPUs, as data loaders do. CUDA does not work in such a child.

using namespace runjob::runtime;

// The sanitizers' allocators do not survive a fork while other threads allocate: a lock of theirs may stay held.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

/// Seconds that a child may take before it counts as one that hangs.
constexpr unsigned kChildTime = 20;

/// The text of what goes wrong in a child that runs `body`; it ends without destructors, as a data loader's.
std::string failure_in_child(const std::function<void()>& body) {
  int ends[2];
  require(::pipe(ends) == 0, "a pipe");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(kChildTime);
    const std::string text = failure_of(body);
    static_cast<void>(!::write(ends[1], text.data(), text.size()));
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text(4096, ' ');
  const ssize_t count = ::read(ends[0], text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0 ? text : "it ended with status " + std::to_string(status);
}

runjob_code submit_to_gpu(const runjob_tensor& tensor, const UserStream& stream) {
  runjob_handle handle = 0;
  const runjob_operation operation = gpu_operation("of the child", RUNJOB_ALLREDUCE, tensor, stream);
  return runjob_submit(&operation, &handle);
}

}  // namespace

TEST_CASE("a child that is forked while GPUs are at work is not a member, and the operations of its parent go on",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    constexpr int kForks = 12;
    const UserStream stream(rank);
    const std::int64_t extent = 2;
    for (int i = 0; i < kForks; ++i) {
      const GpuTensor<float> tensor(stream, {1, 2});
      const runjob_tensor one = described(tensor, tensor, extent);
      const runjob_handle handle = start(gpu_operation("x", RUNJOB_ALLREDUCE, one, stream));
      if (i % 2 == 0) check(runjob_wait_on_stream(handle, stream.get(), -1));
      const std::string failure = failure_in_child([&] {
        require(runjob_is_initialized() == 0, "is not initialized");
        require(runjob_poll(handle) == -1, "the handle is the parent's");
        require(runjob_wait_on_stream(handle, stream.get(), -1) == RUNJOB_NOT_INITIALIZED, "waits for nothing");
        require(submit_to_gpu(one, stream) == RUNJOB_NOT_INITIALIZED, "submits nothing");
        require(runjob_check(-1) == RUNJOB_NOT_INITIALIZED, "checks nothing");
        runjob_release(handle);
        check(runjob_shutdown());
      });
      require(failure == "nothing", "in child " + std::to_string(i) + ": " + failure);
      check(finish(handle));
      require(tensor.values() == Floats{2, 4}, "the sum beside child " + std::to_string(i));
    }
  });
}

TEST_CASE("a child that starts a job of its own has the CPU's collectives, and is told why it has no GPU",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    const UserStream stream(rank);
    const std::int64_t extent = 2;
    const GpuTensor<float> tensor(stream, {1, 2});
    const runjob_tensor one = described(tensor, tensor, extent);
    const runjob_handle handle = launched(stream, tensor, "x");
    const std::string failure = failure_in_child([&] {
      for (const char* name : {"RUNJOB_RENDEZVOUS", "RUNJOB_RANK"}) ::unsetenv(name);
      check(runjob_init());
      check(small_allreduce("alone"));
      const runjob_handle refused = start(gpu_operation("x", RUNJOB_ALLREDUCE, one, stream));
      require(runjob_wait(refused, -1) == RUNJOB_UNAVAILABLE, "no GPU");
      require_text(runjob_error_message(),
                   std::string("this process was forked by one that had used ") + stand_in::kPlatform);
      require_text(runjob_backends_json(),
                   std::string("this process was forked by one that had used ") + stand_in::kPlatform);
      check(runjob_shutdown());
    });
    require(failure == "nothing", "in the child: " + failure);
    check(finish(handle));
    check(sum_of_ones(rank, "y"));
  });
}

TEST_CASE("a child that is forked before the first tensor on a GPU has GPUs of its own",
          "[runtime][multiproc][stand-in]") {
  on_ranks(2, [](int rank) {
    const std::string failure = failure_in_child([rank] {
      for (const char* name : {"RUNJOB_RENDEZVOUS", "RUNJOB_RANK"}) ::unsetenv(name);
      check(runjob_init());
      check(sum_of_ones(rank, "alone"));
      check(runjob_shutdown());
    });
    require(failure == "nothing", "in the child: " + failure);
    check(sum_of_ones(rank, "x"));
  });
}

#endif

TEST_CASE("the loss of a rank whose GPU the others wait for is noticed while its child lives",
          "[runtime][multiproc][stand-in]") {
  Steps has_first, is_over;
  const std::vector<Outcome> outcomes = outcomes_of(2, [&](int rank) {
    const runjob_code first = sum_of_ones(rank, "first");
    has_first.reach();
    if (rank == 1) {
      has_first.wait_for(2);  // else the other rank may still wait for the first operation, and fail there
      if (::fork() == 0) {
        is_over.wait_for(1);
        ::_exit(0);
      }
      ::_exit(0);
    }
    const std::string text = failure_of([&] { check(sum_of_ones(rank, "second")); });
    is_over.reach();  // in any case: the child waits for it
    check(first);
    require_text(text, "rank 1 on alpha is gone");
  });
  INFO(outcomes[0].message);
  CHECK(outcomes[0].ok());
}
