#include "runtime/collectives/hierarchical/allgather.hpp"

#include <set>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/host_inputs.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

namespace {

/// Every rank's elements, one after the other.
Bytes gathered(DType dtype, const std::vector<std::size_t>& counts) {
  Bytes all;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const Bytes part = exact_input(dtype, counts[rank], static_cast<int>(rank));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

TEST_CASE("between hosts: every rank gets the inputs of all, even, uneven and empty ones", "[runtime][unit]") {
  for (const std::vector<int>& hosts : topologies()) {
    const int size = static_cast<int>(hosts.size());
    std::vector<std::vector<std::size_t>> all_counts;
    for (const std::size_t unit : {1u, 60u, 700u, 9001u}) {
      std::vector<std::size_t> even(hosts.size(), unit), uneven;
      for (std::size_t rank = 0; rank < hosts.size(); ++rank) uneven.push_back(rank * 5 % 3 * unit);
      all_counts.push_back(even);
      all_counts.push_back(uneven);
      all_counts.emplace_back(hosts.size(), 0u).back() = unit;
    }
    for (const int used : std::set{1, Topology(0, hosts).columns()}) {
      const auto errors = run_hosts({hosts, with_columns(used)}, [&](HostChannels& channels) {
        const int rank = channels.topology.rank();
        for (const auto& counts : all_counts) {
          const Bytes expected = gathered(DType::kFloat32, counts);
          const std::size_t count = counts[static_cast<std::size_t>(rank)];
          const Bytes input = exact_input(DType::kFloat32, count, rank);
          Bytes output(expected.size());
          allgather(channels, {.dtype = DType::kFloat32,
                               .input = count == 0 ? nullptr : input.data(),
                               .output = output.data(),
                               .count = count,
                               .counts = counts});
          if (output != expected) throw std::runtime_error("counts of " + std::to_string(counts.back()));
        }
      });
      CHECK(errors == no_errors(size));
    }
  }
}
