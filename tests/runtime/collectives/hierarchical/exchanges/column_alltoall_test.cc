#include "runtime/collectives/hierarchical/exchanges/column_alltoall.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

namespace {

std::int32_t value(int from, int to, std::size_t i) {
  return static_cast<std::int32_t>(from * 1000003 + to * 10007 + static_cast<int>(i));
}

/// Runs the exchange on this rank and checks its output. `part(from, to)`: a number of elements.
template <class Part>
void check_exchange(HostChannels& channels, std::size_t largest, bool has_equal_parts, Part part) {
  const int rank = channels.topology.rank();
  Call call{.kind = Kind::kAlltoall, .dtype = DType::kInt32};
  std::vector<std::int32_t> input, expected;
  for (int peer = 0; peer < channels.topology.size(); ++peer) {
    call.send_counts.push_back(part(rank, peer));
    call.counts.push_back(part(peer, rank));
    for (std::size_t i = 0; i < part(rank, peer); ++i) input.push_back(value(rank, peer, i));
    for (std::size_t i = 0; i < part(peer, rank); ++i) expected.push_back(value(peer, rank, i));
  }
  std::vector<std::int32_t> output(expected.size());
  call.input = input.data();
  call.output = output.data();
  call.count = input.size();
  call.largest_part = largest;
  call.has_equal_parts = has_equal_parts;
  column_alltoall(channels, call);
  if (output != expected) throw std::runtime_error("largest part " + std::to_string(largest));
}

}  // namespace

TEST_CASE("columns exchange the parts of hosts with as many ranks each, in whatever order", "[runtime][unit]") {
  const auto hosts = GENERATE(values<std::vector<int>>(
      {{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 1, 0, 1, 1}, {0, 1, 1, 2, 2, 0}, {0, 0, 1, 1, 2, 2, 3, 3}, {0, 1, 2}}));
  // Parts of a few bytes, of several hosts in one ring cell, and of many segments.
  const auto errors = run_hosts({hosts, {}}, [](HostChannels& channels) {
    for (const std::size_t unit : {1u, 7u, 100u, 300u, 9000u, 60000u}) {
      check_exchange(channels, unit, true, [&](int, int) { return unit; });
      check_exchange(channels, 3 * unit, false,
                     [&](int from, int to) { return static_cast<std::size_t>((from * 3 + to * 5) % 4) * unit; });
    }
  });
  CHECK(errors == no_errors(static_cast<int>(hosts.size())));
}

TEST_CASE("columns exchange a part of one rank only", "[runtime][unit]") {
  const auto errors = run_hosts({{0, 0, 1, 1}, {}}, [](HostChannels& channels) {
    for (int from = 0; from < 4; ++from) {
      for (int to = 0; to < 4; ++to) {
        check_exchange(channels, 2500, false, [&](int of, int at) { return of == from && at == to ? 2500u : 0u; });
      }
    }
  });
  CHECK(errors == no_errors(4));
}
