#include <string>
#include <sys/resource.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "benchmarks/rendezvous/direct.hpp"
#include "benchmarks/rendezvous/relay.hpp"

/// rendezvous_benchmark relay|direct HOSTS RANKS_PER_HOST: measures once and prints JSON.
int main(int argc, char** argv) {
  using namespace runjob;
  using namespace runjob::benchmark;
  try {
    require(argc == 4, "expected: relay or direct, the number of hosts, the ranks of each");
    const std::string way = argv[1];
    require(way == "relay" || way == "direct", "expected relay or direct");
    const Size size{static_cast<int>(parse_integer(argv[2], "hosts", 1, 100'000)),
                    static_cast<int>(parse_integer(argv[3], "ranks of a host", 1, 10'000))};
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    const Measurement measured = way == "relay" ? measure_relay(size) : measure_direct(size);
    fmt::print(R"({{"joined": {:.4f}, "barrier_passed": {:.4f}, "gathered": {:.4f}, "head_cpu_seconds": {:.3f}, )"
               R"("head_peak_mb": {:.1f}}})"
               "\n",
               measured.joined, measured.barrier_passed, measured.gathered, measured.head_cpu_seconds,
               measured.head_peak_mb);
    return 0;
  } catch (const std::exception& error) {
    require(false, error.what());
  }
}
