#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <unistd.h>

#include "tests/runtime/collectives/nccl/gpu_ranks.hpp"
#include "tests/runtime/collectives/nccl/steps.hpp"

/// A rank that goes while GPUs are at work: the others end with an error where theirs could never end, and only there.
/// No stall limit is set, so that a rank which is left waiting hangs until the test's own limit.

using namespace runjob::runtime;

namespace {

/// Keeps a stream busy from now on, until it is destroyed.
class Blocked {
 public:
  explicit Blocked(const UserStream& stream) : stream_(stream) {
    const cuda::CurrentGpu current(stream.gpu());
    stand_in_gpu().enqueue(
        stream.get(),
        [](void* is_free) {
          while (!*static_cast<std::atomic<bool>*>(is_free)) ::usleep(500);
        },
        &is_free_);
  }
  ~Blocked() {
    is_free_ = true;
    stream_.synchronize();
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  const UserStream& stream_;
  std::atomic<bool> is_free_{false};
};

/// Two ones on the stream's GPU, which are never freed, because the GPU may be at work on them for ever.
const GpuTensor<float>& lasting_ones(int rank) {
  const auto* const stream = new UserStream(rank);
  const auto* const tensor = new GpuTensor<float>(*stream, {1, 1});
  stream->synchronize();
  return *tensor;
}

/// A first operation, and a second one that every rank has launched and the GPU of rank `leaver` never ends. `leave` is
/// called there; the other ranks wait, and must get an error that has `text`.
template <class Leave>
std::vector<Outcome> outcomes_with_busy_gpu(int size, int leaver, const std::string& text, Leave leave) {
  const auto are_launched = std::make_shared<Steps>();
  return outcomes_of(size, [=](int rank) {
    if (rank == leaver) ::setenv("RUNJOB_STAND_IN_HANG", "kernel:2", 1);
    check(sum_of_ones(rank, "first"));
    const UserStream stream(rank);
    const runjob_handle handle = launched(stream, lasting_ones(rank), "second");
    are_launched->reach();
    are_launched->wait_for(size);
    if (rank == leaver) return leave();
    require_text(failure_of([&] { check(runjob_wait(handle, -1)); }), text);
    require_text(failure_of([] { check(runjob_check(-1)); }), text);
  });
}

std::string name_of(int rank) {
  return "rank " + std::to_string(rank) + " on alpha";
}

}  // namespace

TEST_CASE("a rank that calls shutdown() while its GPU is at work ends what waits for it, with the operation's name",
          "[runtime][multiproc][stand-in]") {
  const int size = GENERATE(2, 3, 4), leaver = GENERATE(0, 1);
  const std::string text = name_of(leaver) +
                           " called shutdown() before its part in all operations was done; the first " +
                           "one is on GPU " + std::to_string(leaver) + " (GPU-";
  require_success(outcomes_with_busy_gpu(size, leaver, text, [] {}));
}

TEST_CASE("a rank that ends by exit, an exception or a signal while its GPU is at work is lost",
          "[runtime][multiproc][stand-in]") {
  const int size = GENERATE(2, 4), leaver = GENERATE(0, 1), how = GENERATE(0, 1, 2);
  const std::vector<Outcome> outcomes = outcomes_with_busy_gpu(size, leaver, name_of(leaver) + " is gone", [how] {
    if (how == 0) ::_exit(0);
    if (how == 1) throw std::runtime_error("an exception");
    ::raise(SIGKILL);
  });
  for (int rank = 0; rank < size; ++rank) {
    INFO(outcomes[static_cast<std::size_t>(rank)].message);
    if (rank != leaver) CHECK(outcomes[static_cast<std::size_t>(rank)].ok());
  }
}

TEST_CASE("a rank that leaves at once after its GPU or a launch has failed does not leave the others waiting",
          "[runtime][multiproc][stand-in]") {
  const int size = GENERATE(2, 3), leaver = GENERATE(0, 1);
  const std::string failing = GENERATE("ncclAllReduce:2", "kernel:2", "stream_wait:2");
  INFO(failing);
  const std::vector<Outcome> outcomes = outcomes_of(size, [&](int rank) {
    if (rank == leaver) ::setenv("RUNJOB_STAND_IN_FAIL", failing.c_str(), 1);
    check(sum_of_ones(rank, "first"));
    const UserStream stream(rank);
    const std::int64_t extent = 2;
    const GpuTensor<float>& tensor = lasting_ones(rank);
    const runjob_tensor one = described(tensor, tensor, extent);
    const runjob_handle handle = start(gpu_operation("second", RUNJOB_ALLREDUCE, one, stream));
    if (rank != leaver) return check(runjob_wait(handle, -1));
    while (runjob_wait(handle, 0.01) == RUNJOB_IN_PROGRESS && failing != "ncclAllReduce:2") {
    }
  });
  for (int rank = 0; rank < size; ++rank) {
    if (rank != leaver)
      CHECK_THAT(outcomes[static_cast<std::size_t>(rank)].message, ContainsSubstring(name_of(leaver)));
  }
}

TEST_CASE("a rank that submits and leaves without waiting is an error or a success, and never a rank that waits",
          "[runtime][multiproc][stand-in]") {
  const int size = GENERATE(2, 3, 4), leaver = GENERATE(0, 1), turn = GENERATE(range(0, 6));
  const std::vector<Outcome> outcomes = outcomes_of(size, [&](int rank) {
    check(sum_of_ones(rank, "first"));
    const UserStream stream(rank);
    const std::int64_t extent = 2;
    const GpuTensor<float>& tensor = lasting_ones(rank);
    const runjob_tensor one = described(tensor, tensor, extent);
    if (rank != leaver) ::usleep(static_cast<unsigned>(turn) * 150);
    runjob_handle handle = 0;
    const runjob_operation operation = gpu_operation("second", RUNJOB_ALLREDUCE, one, stream);
    if (runjob_submit(&operation, &handle) == RUNJOB_OK && rank != leaver) static_cast<void>(runjob_wait(handle, -1));
  });
  require_success(outcomes);
}

TEST_CASE("a receiver that comes late gets the broadcast of a rank that has left", "[runtime][multiproc][stand-in]") {
  const int root = GENERATE(0, 1);
  Steps reached;
  const std::vector<Outcome> outcomes = run_ranks(on_one_host(2), [&](int rank) {
    check(runjob_init());
    check(sum_of_ones(rank, "first"));
    {
      const UserStream stream(rank), other(rank);
      const std::int64_t extent = 2;
      const GpuTensor<float> tensor(other, rank == root ? Floats{3, 4} : Floats{0, 0});
      other.synchronize();
      std::optional<Blocked> late;
      if (rank != root) late.emplace(stream);
      const runjob_tensor one = described(tensor, tensor, extent);
      runjob_operation operation = gpu_operation("b", RUNJOB_BROADCAST, one, stream);
      operation.root = root;
      const runjob_handle handle = start(operation);
      check(runjob_wait_on_stream(handle, other.get(), -1));
      if (rank == root) {
        check(runjob_wait(handle, -1));
      } else {
        reached.wait_for(1);  // the root has left
        require(runjob_poll(handle) == 0, "the receiver has not begun");
        late.reset();
        check(runjob_wait(handle, -1));
        check(runjob_check(-1));
        require(tensor.values() == Floats{3, 4}, "the root's values");
      }
    }
    check(runjob_shutdown());
    if (rank == root) reached.reach();
    return Outcome();
  });
  require_success(outcomes);
}

TEST_CASE("a process set that is removed while a GPU is at work for it ends its operations, and the job goes on",
          "[runtime][multiproc][stand-in]") {
  on_ranks(
      3,
      [](int rank) {
        if (rank == 0) ::setenv("RUNJOB_STAND_IN_HANG", "kernel:2", 1);
        const std::int32_t members[] = {0, 1};
        std::int32_t set = 0;
        check(runjob_process_set_add(members, 2, &set));
        check(sum_of_ones(rank, "first"));
        runjob_handle handle = 0;
        const UserStream stream(rank);
        const std::int64_t extent = 2;
        const GpuTensor<float>& tensor = lasting_ones(rank);
        const runjob_tensor one = described(tensor, tensor, extent);
        runjob_operation operation = gpu_operation("second", RUNJOB_ALLREDUCE, one, stream);
        operation.process_set = set;
        if (rank != 2) {
          handle = start(operation);
          check(runjob_wait_on_stream(handle, stream.get(), -1));  // else the third operation is the one that hangs
        }
        check(runjob_process_set_remove(set));
        if (rank == 0) require(finish(handle) != RUNJOB_OK, "it has ended");
        check(sum_of_ones(rank, "third"));
      },
      {{"RUNJOB_DYNAMIC_PROCESS_SETS", "1"}});
}

TEST_CASE("a rank whose stream is busy with its input learns that another one is gone, over the stand-ins",
          "[runtime][multiproc][stand-in]") {
  const runjob_kind kind = GENERATE(RUNJOB_ALLREDUCE, RUNJOB_ALLGATHER);
  const bool is_staged = GENERATE(false, true);
  runjob::Environment environment;
  if (is_staged) environment["RUNJOB_NCCL_LIBRARY"] = "/nowhere/libnccl.so";
  const std::vector<Outcome> outcomes = outcomes_of(
      2,
      [&](int rank) {
        check(sum_of_ones(rank, "first"));
        const UserStream& stream = *new UserStream(rank);
        const auto& in = *new GpuTensor<float>(stream, {1, 1});
        const auto& out = *new GpuTensor<float>(stream, {0, 0, 0, 0});
        stream.synchronize();
        if (rank == 0) static_cast<void>(*new Blocked(stream));  // for ever
        const std::int64_t extent = 2;
        const runjob_tensor tensor = described(in, out, extent);
        if (rank == 1) ::alarm(1);  // it may be waiting for rank 0's values then
        check(runjob_wait(start(gpu_operation("second", kind, tensor, stream)), -1));
      },
      environment);
  CHECK_THAT(outcomes[0].message, ContainsSubstring("rank 1 on alpha"));
}
