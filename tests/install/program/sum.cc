// Sums rank + 1 over all ranks, in C++.
#include <cstdio>
#include <exception>
#include <runjob/runjob.hpp>
#include <span>
#include <vector>

int main() try {
  runjob::init();
  runjob::Communicator world;
  std::vector<double> sum = {world.rank() + 1.0};
  world.allreduce(std::span(sum), "sum", runjob::ReduceOp::sum);
  std::printf("rank %d of %d: %g\n", world.rank(), world.size(), sum[0]);
  runjob::shutdown();
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
