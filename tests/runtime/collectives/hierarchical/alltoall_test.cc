#include "runtime/collectives/hierarchical/alltoall.hpp"

#include <algorithm>
#include <numeric>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/host_inputs.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

namespace {

/// What `from` sends to `to`; some of them nothing.
std::size_t part(int from, int to, std::size_t unit) {
  return static_cast<std::size_t>((from * 3 + to * 5) % 4) * unit;
}

std::int32_t value(int from, int to, std::size_t i) {
  return static_cast<std::int32_t>(from * 1000003 + to * 10007 + static_cast<int>(i));
}

}  // namespace

TEST_CASE("between hosts: every rank gets its part of every rank's buffer", "[runtime][unit]") {
  for (const std::vector<int>& hosts : topologies()) {
    const int size = static_cast<int>(hosts.size());
    const auto errors = run_hosts({hosts, {}}, [&](HostChannels& channels) {
      const int rank = channels.topology.rank();
      for (const std::size_t unit : {1u, 100u, 9000u}) {
        Call call{.kind = Kind::kAlltoall, .dtype = DType::kInt32};
        std::vector<std::int32_t> input, expected;
        for (int peer = 0; peer < size; ++peer) {
          call.send_counts.push_back(part(rank, peer, unit));
          call.counts.push_back(part(peer, rank, unit));
          for (std::size_t i = 0; i < part(rank, peer, unit); ++i) input.push_back(value(rank, peer, i));
          for (std::size_t i = 0; i < part(peer, rank, unit); ++i) expected.push_back(value(peer, rank, i));
        }
        std::vector<std::int32_t> output(expected.size());
        call.input = input.data();
        call.output = output.data();
        call.count = input.size();
        call.largest_part = 3 * unit;
        alltoall(channels, call);
        if (output != expected) throw std::runtime_error("unit " + std::to_string(unit));
      }
    });
    CHECK(errors == no_errors(size));
  }
}
