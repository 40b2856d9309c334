// Sums a vector over all ranks and times it.
//
//     cmake -S examples/cpp -B build/example -DCMAKE_PREFIX_PATH=<where runjob is installed>
//     cmake --build build/example
//     runjob -np 2 build/example/allreduce
//
// Without runjob in front it is a job of one rank.

#include <chrono>
#include <cstdio>
#include <exception>
#include <runjob/runjob.hpp>
#include <vector>

namespace {

void sum_and_report() {
  constexpr std::size_t kCount = 1 << 20;
  const runjob::Communicator world;
  std::vector<float> values(kCount, static_cast<float>(world.rank() + 1));
  const auto start = std::chrono::steady_clock::now();
  world.allreduce(std::span(values), "values");
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;

  const float expected = static_cast<float>(world.size() * (world.size() + 1) / 2);
  for (const float value : values) {
    if (value != expected) throw std::runtime_error("the sum is wrong");
  }
  if (world.rank() == 0) {
    std::printf("%d ranks, %zu floats: each sum is %g, in %.2f ms\n", world.size(), kCount, values.front(),
                time.count());
  }
}

}  // namespace

int main() {
  try {
    runjob::init();
    sum_and_report();
    runjob::shutdown();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "allreduce: %s\n", error.what());
    return 1;
  }
  return 0;
}
