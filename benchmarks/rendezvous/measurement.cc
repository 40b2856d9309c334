#include "benchmarks/rendezvous/measurement.hpp"

#include <cstdio>

#include <fmt/format.h>

namespace runjob::benchmark {

void require(bool condition, std::string_view what) {
  if (condition) return;
  std::fputs(fmt::format("rendezvous_benchmark: error: {}\n", what).c_str(), stderr);
  std::_Exit(1);
}

}  // namespace runjob::benchmark
