/// One rank of an elastic job whose state lies on a GPU, in C++:
///
///     elastic_gpu_rank RANKS STEPS VICTIM
///
/// It makes steps until there have been so many and there are RANKS of them. In each step the ranks average a gradient
/// on their GPUs, and the result becomes the weights, which have the number of steps in every element. The process that
/// has rank VICTIM in the first generation kills itself in step 3, when its part of the average is launched and its GPU
/// is at work on it. Prints a line at the begin of each generation, and one at the end:
///
///     generation 1: rank 0 of 2, process 1234: 3 steps
///     end: rank 0 of 3, process 1234: 20 steps
///
/// tests/python/elastic/test_gpu_elastic.py starts it over the stand-ins.

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <runjob/elastic.hpp>
#include <runjob/gpu.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "runtime/collectives/cuda/driver_abi.hpp"

namespace {

namespace cuda = runjob::runtime::cuda;

constexpr std::size_t kCount = 5000;
constexpr int kLossStep = 3;

void require(bool condition, const std::string& text) {
  if (!condition) throw std::runtime_error(text);
}

/// A GPU with one stream, by CUDA's driver alone, as a user's program has it.
class UserGpu {
 public:
  explicit UserGpu(int ordinal) : ordinal_(ordinal) {
    cuda::DeviceNumber device = 0;
    cuda::Context context = nullptr;
    call<unsigned>("cuInit", 0u);
    call<cuda::DeviceNumber*, int>("cuDeviceGet", &device, ordinal);
    call<cuda::Context*, cuda::DeviceNumber>("cuDevicePrimaryCtxRetain", &context, device);
    call<cuda::Context>("cuCtxPushCurrent_v2", context);
    call<cuda::Stream*, unsigned, int>("cuStreamCreateWithPriority", &stream_, 1u, 0);
  }

  runjob::GpuStream place() const { return {.device = ordinal_, .stream = stream_}; }
  /// Memory that is never freed: after a failure a GPU may be at work on it.
  std::span<float> make() const {
    cuda::Address address = 0;
    call<cuda::Address*, std::size_t>("cuMemAlloc_v2", &address, kCount * sizeof(float));
    return {reinterpret_cast<float*>(address), kCount};
  }
  void write(std::span<float> to, const std::vector<float>& values) const {
    const auto address = reinterpret_cast<cuda::Address>(to.data());
    call<cuda::Address, const void*, std::size_t, cuda::Stream>("cuMemcpyHtoDAsync_v2", address, values.data(),
                                                                to.size_bytes(), stream_);
    call<cuda::Stream>("cuStreamSynchronize", stream_);
  }
  std::vector<float> read(std::span<float> from) const {
    std::vector<float> values(from.size());
    const auto address = reinterpret_cast<cuda::Address>(from.data());
    call<void*, cuda::Address, std::size_t, cuda::Stream>("cuMemcpyDtoHAsync_v2", values.data(), address,
                                                          from.size_bytes(), stream_);
    call<cuda::Stream>("cuStreamSynchronize", stream_);
    return values;
  }

 private:
  template <class... Arguments>
  static void call(const char* name, Arguments... arguments) {
    static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
    const auto function = reinterpret_cast<cuda::Result (*)(Arguments...)>(::dlsym(driver, name));
    require(function != nullptr && function(arguments...) == cuda::kSuccess, std::string(name) + "() has failed");
  }

  const int ordinal_;
  cuda::Stream stream_ = nullptr;
};

class Training {
 public:
  Training(int ranks, int steps, int victim)
      : ranks_(ranks),
        steps_(steps),
        is_victim_(runjob_generation() == 0 && runjob_rank() == victim),
        gpu_(::getpid() % 8),
        weights_(gpu_.make()),
        gradient_(gpu_.make()) {
    gpu_.write(weights_, std::vector<float>(kCount));
    state_.add(step_).add([this] { return save(); }, [this](std::span<const std::byte> bytes) { load(bytes); });
  }

  void run() {
    const bool finished = runjob::elastic::run(state_, [this] { train(); });
    require(finished, "the job has not finished");
    tell("end");
  }

 private:
  std::vector<std::byte> save() const {
    const std::vector<float> values = gpu_.read(weights_);
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
  }
  void load(std::span<const std::byte> bytes) const {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    gpu_.write(weights_, values);
  }

  void train() {
    tell(("generation " + std::to_string(runjob_generation())).c_str());
    check();
    while (step_ < steps_ || runjob_size() < ranks_) {
      make_step();
      ++step_;
      check();
      state_.commit();
    }
  }

  void make_step() const {
    const auto own = static_cast<float>(2 * (step_ + 1) * (runjob_rank() + 1)) / static_cast<float>(runjob_size() + 1);
    gpu_.write(gradient_, std::vector<float>(kCount, own));
    const runjob::GpuCommunicator world(gpu_.place());
    const runjob::Handle average =
        world.allreduce_async(std::span<const float>(gradient_), weights_, "gradient", runjob::ReduceOp::average);
    average.wait_on_stream(gpu_.place().stream);
    if (is_victim_ && step_ == kLossStep) ::raise(SIGKILL);
    average.wait();
  }

  void check() const {
    for (const float value : gpu_.read(weights_)) {
      require(std::abs(value - static_cast<float>(step_)) < 1e-3f * static_cast<float>(step_ + 1),
              "a weight is " + std::to_string(value) + " after " + std::to_string(step_) + " steps");
    }
  }

  void tell(const char* what) const {
    std::printf("%s: rank %d of %d, process %d: %d steps\n", what, runjob_rank(), runjob_size(), ::getpid(), step_);
    std::fflush(stdout);
  }

  const int ranks_, steps_;
  const bool is_victim_;
  const UserGpu gpu_;
  const std::span<float> weights_, gradient_;
  int step_ = 0;
  runjob::elastic::State state_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    ::setenv("NCCL_HOSTID", std::to_string(::getpid()).c_str(), 1);  // two processes may have one GPU
    runjob::init();
    Training(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3])).run();
    runjob::shutdown();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
