#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <runjob/runjob.h>
#include <string>
#include <vector>

#include "runtime/collectives/cuda/gpu.hpp"
#include "runtime/collectives/nccl/nccl_library.hpp"

/// The host's time for one allreduce in place on a GPU through the C interface, beside the same calls of CUDA and NCCL
/// alone, in alternating turns; and the time of the whole operation. A rank of a job:
///
///     runjob -np 2 gpu_host_time [--bare=0] [LARGEST_BYTES]
///
/// Rank 0 prints `FIGURE name value unit` lines, separated by tabs. With --bare=0 nothing is compared with NCCL, as
/// where two ranks cannot have a communicator.
namespace {

using namespace runjob::runtime;
using Clock = std::chrono::steady_clock;

constexpr int kTurns = 41, kCalls = 20;

double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void must(runjob_code code) {
  if (code == RUNJOB_OK) return;
  std::fprintf(stderr, "host_time: %s\n", runjob_error_message());
  std::_Exit(1);
}

void print(const std::string& name, double value, const char* unit) {
  if (runjob_rank() == 0) std::printf("FIGURE\t%s\t%.2f\t%s\n", name.c_str(), value, unit);
  std::fflush(stdout);
}

std::string text(std::size_t bytes) {
  return bytes >= 1u << 20 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes >> 10) + " KiB";
}

/// A tensor, and the caller's stream.
struct Place {
  cuda::Gpu& gpu;
  cuda::Stream stream;
  cuda::Address memory = 0;

  explicit Place(cuda::Gpu& of, std::size_t most) : gpu(of), stream(of.take_stream()) {
    const cuda::CurrentGpu current(gpu);
    cuda::check(cuda::driver().memory_allocate(&memory, most), "allocating");
    cuda::check(cuda::driver().set_bytes(memory, 0, most, stream), "clearing");
  }
  void synchronize() const {
    const cuda::CurrentGpu current(gpu);
    cuda::check(cuda::driver().stream_synchronize(stream), "waiting for a stream");
  }
};

/// An allreduce of the runtime.
class Ours {
 public:
  explicit Ours(Place& place) : place_(place) {}
  void run(std::size_t bytes) {
    extent_ = static_cast<std::int64_t>(bytes / sizeof(float));
    void* const memory = reinterpret_cast<void*>(place_.memory);
    const runjob_tensor tensor{memory, memory, 0, &extent_, 1, RUNJOB_FLOAT32};
    runjob_operation operation{};
    operation.size = sizeof operation;
    operation.name = "gradient";
    operation.kind = RUNJOB_ALLREDUCE;
    operation.count = 1;
    operation.tensors = &tensor;
    operation.op = RUNJOB_SUM;
    operation.prescale = operation.postscale = 1;
    operation.memory = RUNJOB_GPU_MEMORY;
    operation.device = place_.gpu.ordinal();
    operation.stream = place_.stream;
    runjob_handle handle = 0;
    must(runjob_submit(&operation, &handle));
    must(runjob_wait_on_stream(handle, place_.stream, -1));
    runjob_release(handle);
  }

 private:
  Place& place_;
  std::int64_t extent_ = 0;
};

/// The same with CUDA and NCCL alone: the caller's stream is waited for, and waits.
class Bare {
 public:
  explicit Bare(Place& place)
      : place_(place),
        library_(nccl::library(std::getenv("RUNJOB_NCCL_LIBRARY") == nullptr ? std::string()
                                                                             : std::getenv("RUNJOB_NCCL_LIBRARY"))) {
    nccl::UniqueId id{};
    if (runjob_rank() == 0) nccl::check(library_, library_.get_unique_id(&id), "making an id");
    const std::int64_t bytes = sizeof id.bytes;
    must(runjob_broadcast("id", id.bytes, &bytes, 1, RUNJOB_UINT8, 0, 0, -1, nullptr));
    const cuda::CurrentGpu current(place.gpu);
    stream_ = place.gpu.take_stream();
    ready_ = place.gpu.take_event();
    done_ = place.gpu.take_event();
    nccl::check(library_, library_.init_rank(&comm_, runjob_size(), id, runjob_rank()), "ncclCommInitRank()");
  }
  void run(std::size_t bytes) {
    const cuda::CurrentGpu current(place_.gpu);
    const cuda::Driver& driver = cuda::driver();
    void* const memory = reinterpret_cast<void*>(place_.memory);
    cuda::check(driver.event_record(ready_, place_.stream), "recording");
    cuda::check(driver.stream_wait(stream_, ready_, 0), "waiting");
    nccl::check(library_,
                library_.all_reduce(memory, memory, bytes / sizeof(float), nccl::kFloat32, nccl::kSum, comm_, stream_),
                "ncclAllReduce()");
    cuda::check(driver.event_record(done_, stream_), "recording");
    cuda::check(driver.stream_wait(place_.stream, done_, 0), "waiting");
  }

 private:
  Place& place_;
  const nccl::Library& library_;
  nccl::Comm comm_ = nullptr;
  cuda::Stream stream_ = nullptr;
  cuda::Event ready_ = nullptr, done_ = nullptr;
};

/// The host's time of a call, and that until the GPU is done, in microseconds. One call in each turn is timed to its
/// end, so that the GPU's queue stays short.
struct Times {
  std::vector<double> host, whole;

  template <class Way>
  void take_turn(Way& way, const Place& place, std::size_t bytes) {
    const int calls = bytes > (1u << 20) ? 2 : kCalls;
    for (int i = 0; i < calls; ++i) {
      const auto begin = Clock::now();
      way.run(bytes);
      host.push_back(microseconds(Clock::now() - begin));
      place.synchronize();
      whole.push_back(microseconds(Clock::now() - begin));
    }
  }
};

void measure(Place& place, Ours& ours, Bare* bare, std::size_t bytes) {
  Times own, theirs;
  for (int turn = -3; turn < (bytes > (1u << 24) ? kTurns / 4 : kTurns); ++turn) {
    if (turn == 0) own = theirs = {};
    own.take_turn(ours, place, bytes);
    if (bare != nullptr) theirs.take_turn(*bare, place, bytes);
  }
  const std::string size = text(bytes);
  print("host time of an allreduce of " + size, median(own.host), "us");
  print("allreduce of " + size + ", to its end", median(own.whole), "us");
  if (bare == nullptr) return;
  print("host time of NCCL alone, " + size, median(theirs.host), "us");
  print("host time more than NCCL alone, " + size, median(own.host) - median(theirs.host), "us");
  print("NCCL alone, " + size + ", to its end", median(theirs.whole), "us");
}

}  // namespace

int main(int argc, char** argv) {
  bool with_bare = true;
  std::size_t largest = std::size_t{256} << 20;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--bare=0") == 0) {
      with_bare = false;
    } else {
      largest = std::strtoull(argv[i], nullptr, 10);
    }
  }
  must(runjob_init());
  try {
    cuda::Gpu& gpu = cuda::Gpu::of(runjob_local_rank() % static_cast<int>(cuda::list_gpus().size()));
    Place place(gpu, largest);
    Ours ours(place);
    std::unique_ptr<Bare> bare;
    if (with_bare) bare = std::make_unique<Bare>(place);
    for (const std::size_t kib : {4, 64, 1024, 16 << 10, 64 << 10, 256 << 10}) {
      if (kib << 10 <= largest) measure(place, ours, bare.get(), kib << 10);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "host_time: %s\n", error.what());
    std::_Exit(1);
  }
  must(runjob_shutdown());
  std::fflush(nullptr);
  std::_Exit(0);  // the communicator goes with the process
}
