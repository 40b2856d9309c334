#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "benchmarks/collectives/native/arguments.hpp"

/// Measures the limits of the machine while all ranks work at once: the time to copy a number of bytes, or to scale
/// them in place. An allreduce in place reads and writes each byte at least once, as scaling does. Runs without a
/// launcher: it forks its ranks.
namespace runjob::benchmark {
namespace {

constexpr int kSamples = 5;

/// The state that the ranks share. The others keep working until rank 0 has measured.
struct Shared {
  std::atomic<int> arrived{0};
  std::atomic<int> rounds_done{0};
};

/// Returns when all ranks have come for the `round`th time, from 1.
void meet(Shared& shared, int np, int round) {
  shared.arrived.fetch_add(1);
  while (shared.arrived.load() < np * round) ::usleep(50);
}

void copy(char* to, char* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  asm volatile("" : : "r"(to) : "memory");
}

__attribute__((target_clones("avx512f", "avx2", "default"))) void scale(float* values, std::size_t count,
                                                                        float factor) {
  for (std::size_t i = 0; i < count; ++i) values[i] *= factor;
}

/// One size's memory, touched.
struct Memory {
  static constexpr std::align_val_t kAlignment{64};
  struct Delete {
    void operator()(char* memory) const { ::operator delete[](memory, kAlignment); }
  };
  using Buffer = std::unique_ptr<char[], Delete>;

  explicit Memory(std::size_t bytes)
      : from(new (kAlignment) char[bytes]), to(new (kAlignment) char[bytes]), size(bytes) {
    std::fill_n(reinterpret_cast<float*>(from.get()), bytes / sizeof(float), 1.0F);
    std::memset(to.get(), 0, bytes);
  }

  Buffer from;
  Buffer to;
  std::size_t size;
};

/// Microseconds of one `work`, `repeats` of them timed together.
template <class Work>
double timed(Work work, std::size_t repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < repeats; ++i) work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(repeats);
}

/// Each sample takes a fifth of the budget, so that with more ranks than cores it includes the others' turns: the
/// median of single copies would be that of a rank with a core of its own.
template <class Work>
std::vector<double> sample(const Arguments& arguments, Work work) {
  const double once_us = std::min(timed(work, 3), timed(work, 3));
  const double fitting = arguments.budget_ms * 1000 / kSamples / std::max(once_us, 0.0001);
  const auto repeats = static_cast<std::size_t>(std::max(fitting, 1.0));
  std::vector<double> times_us;
  for (int i = 0; i < kSamples; ++i) times_us.push_back(timed(work, repeats));
  return times_us;
}

void print_times(const char* what, std::size_t bytes, const std::vector<double>& times_us) {
  std::printf("{\"limit\": \"%s\", \"bytes\": %zu, \"operations\": 1, \"times_us\": [", what, bytes);
  for (std::size_t i = 0; i < times_us.size(); ++i) std::printf("%s%.4f", i == 0 ? "" : ", ", times_us[i]);
  std::puts("]}");
}

/// Rank 0 measures; the others do the same until it has finished.
template <class Work>
void measure_limit(const char* what, const Arguments& arguments, Shared& shared, int rank, int round, std::size_t bytes,
                   Work work) {
  meet(shared, arguments.np, round);
  if (rank != 0) {
    while (shared.rounds_done.load() < round) work();
    return;
  }
  const std::vector<double> times_us = sample(arguments, work);
  shared.rounds_done.store(round);
  print_times(what, bytes, times_us);
}

void run_rank(const Arguments& arguments, Shared& shared, int rank) {
  volatile float one = 1.0F;  // unknown to the compiler
  int round = 0;
  for (const Size& size : arguments.sizes) {
    const Memory memory(std::max<std::size_t>(size.bytes, sizeof(float)));
    measure_limit("t_copy", arguments, shared, rank, ++round, memory.size,
                  [&] { copy(memory.to.get(), memory.from.get(), memory.size); });
    measure_limit("t_scale", arguments, shared, rank, ++round, memory.size,
                  [&] { scale(reinterpret_cast<float*>(memory.from.get()), memory.size / sizeof(float), one); });
  }
}

int run_ranks(const Arguments& arguments) {
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
  Shared& shared = *new (memory) Shared;
  for (int rank = 1; rank < arguments.np; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // they work until rank 0 has finished
      run_rank(arguments, shared, rank);
      std::_Exit(0);
    }
  }
  run_rank(arguments, shared, 0);
  int failed = 0;
  for (int status = 0; ::wait(&status) > 0;) failed += status != 0;
  return failed;
}

}  // namespace
}  // namespace runjob::benchmark

int main(int argc, char** argv) {
  try {
    return runjob::benchmark::run_ranks(runjob::benchmark::parse_arguments(argc, argv)) == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collectives_limits: error: %s\n", error.what());
    return 1;
  }
}
